"""Without a config.json, what a request looks like comes from the model's own signature."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from support.modelarts import TF, Digits, config, grey, package
from support.server import Server, serving

EMPTY = TF + "class Service(TfServingBaseService):\n    pass\n"
OF_FILES = """
from model_service.tfserving_model_service import TfServingBaseService
from PIL import Image
import numpy as np

class Service(TfServingBaseService):
    def _preprocess(self, data):
        return {key: np.asarray(Image.open(file), np.float32).reshape(1, -1)
                for key, files in data.items() for file in files.values()}
"""


def tried(server: Server, folder: Path) -> httpx.Response:
    """The answer to the line the server shows, run by a shell."""
    line = server.wait_log("try: (.*)")[1]
    done = subprocess.run(
        ["bash", "-c", f"{line} -s -w '%{{http_code}}'"], cwd=folder, capture_output=True, text=True, check=True
    )
    return httpx.Response(int(done.stdout[-3:]), text=done.stdout[:-3])


def test_a_script_that_takes_files_is_shown_a_form(tmp_path: Path, saved_models: Path, digits: Digits) -> None:
    shutil.copytree(saved_models / "keras3", tmp_path, dirs_exist_ok=True)
    with serving(package(tmp_path, OF_FILES, seven__png=digits.pictures[0])) as server:
        line = server.wait_log("try: (.*)")[1]
        assert "-F images=@" in line
        assert "seven.png" in line
        answer = httpx.post(server.url, files={"images": ("seven.png", digits.pictures[0])}, timeout=60)
        assert len(answer.json()["scores"][0]) == 10
        form = server.client.get("/openapi.json").json()["paths"]["/"]["post"]["requestBody"]["content"]
        assert form["multipart/form-data"]["schema"]["required"] == ["images"]


def test_a_script_that_takes_the_models_inputs_is_shown_json(tmp_path: Path) -> None:
    code = """
import sys, tensorflow as tf

class Sum(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec((None, 3), name="a"), tf.TensorSpec((), tf.int32, name="b")])
    def sum(self, a, b):
        return {"sum": tf.reduce_sum(a, axis=1) + tf.cast(b, tf.float32)}

model = Sum()
tf.saved_model.save(model, sys.argv[1], signatures=model.sum)
"""
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, capture_output=True, timeout=110)
    with serving(package(tmp_path, EMPTY)) as server:
        line = server.wait_log("try: (.*)")[1]
        words = shlex.split(line)
        assert json.loads(words[words.index("-d") + 1]) == {"a": [[0.0, 0.0, 0.0]], "b": 0}
        assert tried(server, tmp_path).json() == {"sum": [0.0]}
        schema = server.client.get("/openapi.json").json()["paths"]["/"]["post"]["requestBody"]["content"]
        properties = schema["application/json"]["schema"]["properties"]
        assert properties["a"]["items"]["maxItems"] == 3
        assert properties["b"]["type"] == "integer"


def test_large_inputs_have_a_schema_and_no_example(tmp_path: Path, saved_models: Path) -> None:
    shutil.copytree(saved_models / "vision", tmp_path, dirs_exist_ok=True)
    with serving(package(tmp_path, EMPTY)) as server:
        content = server.client.get("/openapi.json").json()["paths"]["/"]["post"]["requestBody"]["content"]
        assert set(content["application/json"]["schema"]["properties"]) == {"images"}


def test_without_a_script_pictures_are_shown(tmp_path: Path, saved_models: Path) -> None:
    shutil.copytree(saved_models / "vision", tmp_path, dirs_exist_ok=True)
    package(tmp_path, config={"model_algorithm": "x", "model_type": "TensorFlow"}, grey__png=grey(7))
    with serving(tmp_path) as server:
        assert "-F images=@" in server.wait_log("try: (.*)")[1]
        assert tried(server, Path(__file__).parents[2]).json()["mean"] == [7.0]


def test_config_json_says_it_better(tmp_path: Path, saved_models: Path) -> None:
    shutil.copytree(saved_models / "flat", tmp_path, dirs_exist_ok=True)
    request = {
        "Content-type": "multipart/form-data",
        "data": {"type": "object", "properties": {"mine": {"type": "file"}}},
    }
    about = config("TensorFlow", apis=[{"url": "/", "request": request}])
    with serving(package(tmp_path, OF_FILES, about)) as server:
        server.wait_log("for a command to try here: put a request.json")
        form = server.client.get("/openapi.json").json()["paths"]["/"]["post"]["requestBody"]["content"]
        assert "mine" in json.dumps(form["multipart/form-data"])


@pytest.mark.parametrize("broken", [b"", b"no model"])
def test_a_model_that_cannot_be_read_stops_no_script_of_its_own(tmp_path: Path, broken: bytes) -> None:
    script = (
        "import tensorflow\n"
        + TF
        + "class Service(TfServingBaseService):\n    def _inference(self, data):\n        return 7\n"
    )
    with serving(package(tmp_path, script, saved_model__pb=broken)) as server:
        assert server.client.post("/", json={"x": 1}).json() == 7
