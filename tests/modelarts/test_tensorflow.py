"""What the TensorFlow base classes do when a script leaves it to them, and without a script."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from support.modelarts import TF, Digits, config, grey, package
from support.server import panglot, serving
from support.traffic import SOAK

EMPTY_TF = TF + "class Service(TfServingBaseService):\n    pass\n"


def pixels(picture: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(picture)), dtype=np.float32)


@pytest.mark.document("modelarts.10", "modelarts.22", "modelarts.30", "modelarts.31")
def test_tensorflow_runs_the_signature_and_returns_lists(tmp_path: Path, saved_models: Path, digits: Digits) -> None:
    """Two signatures: serving_default, with a warning. A script that never calls the base constructor is served too."""
    script = (
        TF
        + """
class Service(TfServingBaseService):
    def __init__(self, model_name, model_path):
        self.labels = "0123456789"

    def _postprocess(self, data):
        assert type(data["scores"][0]) is list and type(data["scores"][0][0]) is float
        return data
"""
    )
    shutil.copytree(saved_models / "two", tmp_path, dirs_exist_ok=True)
    rows = [pixels(picture).ravel() for picture in digits.pictures[:3]]
    direct = np.stack(rows) @ digits.weights + digits.bias
    with serving(package(tmp_path, script, config("TensorFlow"))) as server:
        server.wait_log("signatures more than one, use serving_default signature")
        answer = server.client.post("/", json={"images": [row.tolist() for row in rows]})
        np.testing.assert_allclose(answer.json()["scores"], direct, rtol=1e-3, atol=1e-3)
        answer = server.client.post("/", json={"wrong": [[0.0] * 784]})
        assert (answer.status_code, answer.json()["erno"]) == (500, "MR.0105")
        server.wait_log(r"input key wrong is not in model inputs \['images'\]")
        assert server.client.post("/", json={"images": [[0.0, 1.0]]}).status_code == 500


@pytest.mark.document("modelarts.10")
@pytest.mark.parametrize("model", ["keras3", "tensorflow1", *(["flat"] if SOAK else [])])
def test_every_generation_of_saved_models_is_run_by_its_signature(
    tmp_path: Path, saved_models: Path, digits: Digits, model: str
) -> None:
    """By a tf.Module with a model of Keras 3, and by TensorFlow 1; other tests here have one of TensorFlow 2."""
    shutil.copytree(saved_models / model, tmp_path, dirs_exist_ok=True)
    rows = np.stack([pixels(picture).ravel() for picture in digits.pictures])
    with serving(package(tmp_path, EMPTY_TF, config("TensorFlow"))) as server:
        answer = server.client.post("/", json={"images": rows.astype(int).tolist()})
        assert answer.status_code == 200, server.log
        assert [int(np.argmax(row)) for row in answer.json()["scores"]] == digits.labels
        for wrong in ({"wrong": [[0.0]]}, {"images": [[0.0]]}, {"images": [["text"]]}):
            answer = server.client.post("/", json=wrong)
            assert (answer.status_code, answer.json()["erno"]) == (500, "MR.0105")


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("odd", "ValueError: the SavedModel has the signatures first, second and no serving_default"),
        *([("none", "ValueError: the SavedModel in .* has no signature to call")] if SOAK else []),
        ("", "FileNotFoundError: there is no saved_model.pb in .*, and the script has no _inference of its own"),
    ],
)
def test_tensorflow_without_a_model_to_run_fails_at_load(
    tmp_path: Path, saved_models: Path, model: str, message: str
) -> None:
    if model:
        shutil.copytree(saved_models / model, tmp_path, dirs_exist_ok=True)
    done = panglot("serve", str(package(tmp_path, EMPTY_TF, config("TensorFlow"))), "--port", "0")
    assert done.returncode == 3
    assert re.search(f"loading the model failed: {message}", done.stderr.strip().splitlines()[-1]), done.stderr


def test_a_saved_model_without_signatures_does_not_stop_a_script_that_loads_its_own(
    tmp_path: Path, saved_models: Path
) -> None:
    shutil.copytree(saved_models / "none", tmp_path, dirs_exist_ok=True)
    script = (
        TF
        + """
class Service(TfServingBaseService):
    def __init__(self, model_name, model_path):
        super().__init__(model_name, model_path)
        self.model = lambda value: value + 1

    def _inference(self, data):
        return self.model(data["x"])
"""
    )
    with serving(package(tmp_path, script, config("TensorFlow"))) as server:
        assert server.client.post("/", json={"x": 1}).json() == 2


def test_the_attributes_of_the_base_class(tmp_path: Path, saved_models: Path) -> None:
    shutil.copytree(saved_models / "flat", tmp_path / "1")
    script = (
        TF
        + """
class Service(TfServingBaseService):
    def _inference(self, data):
        return [self.model_name, self.model_path, self.model.model_signature, list(self.model.model_inputs),
                list(self.model.model_outputs), self.ctx, self.ping(), self.signature()]
"""
    )
    with serving(package(tmp_path, script, config("TensorFlow"))) as server:
        found = server.client.post("/", json={"x": 1}).json()
        assert found == ["serve", str(tmp_path / "1"), "any_name", ["images"], ["scores"], None, None, None]


def test_tensorflow_without_a_script_takes_pictures(tmp_path: Path, saved_models: Path) -> None:
    shutil.copytree(saved_models / "vision", tmp_path / "model")
    package(tmp_path / "model", config=config("TensorFlow"))
    facts = json.loads(panglot("inspect", str(tmp_path), "--json").stdout)
    assert facts["entry"] == "TfServingVisionService.inference"
    assert facts["why"][1] == "no customize_service.py: the platform's default service"
    with serving(tmp_path) as server:
        answer = server.client.post("/", files=[("images", (f"{value}.png", grey(value))) for value in (10, 200)])
        assert answer.json() == {"mean": [10.0, 200.0], "name": ["bright"]}


def test_a_keras_saved_model_is_loaded_by_the_keras_that_wrote_it(tmp_path: Path) -> None:
    """TensorFlow 2 scripts load their folder with tf.keras, which today is Keras 3 and cannot."""
    code = """
import sys, tensorflow as tf
model = tf.keras.Sequential([tf.keras.layers.Input((2,)), tf.keras.layers.Dense(1, kernel_initializer="ones")])
model.save(sys.argv[1], save_format="tf")
"""
    script = """
        import threading

        import numpy as np
        import tensorflow as tf
        from model_service.tfserving_model_service import TfServingBaseService

        class Service(TfServingBaseService):
            def __init__(self, model_name, model_path):
                self.model_path = model_path
                self.model = None
                threading.Thread(target=self.load_model).start()

            def load_model(self):
                self.model = tf.keras.models.load_model(self.model_path)

            def _inference(self, data):
                return self.model(np.array(data["x"], dtype=np.float32)).numpy()
    """
    environment = {**os.environ, "TF_USE_LEGACY_KERAS": "1"}
    subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], check=True, capture_output=True, env=environment, timeout=110
    )
    with serving(package(tmp_path, script, config("TensorFlow"))) as server:
        assert server.client.post("/", json={"x": [[1.0, 2.0]]}).json() == [[3.0]]


def test_a_frozen_graph_is_fed_by_its_placeholders(tmp_path: Path, saved_models: Path, digits: Digits) -> None:
    script = """
        from model_service.frozen_graph_model_service import FrozenGraphBaseService

        class Service(FrozenGraphBaseService):
            def _postprocess(self, data):
                return data["scores"].argmax(axis=1)
    """
    frozen = (saved_models / "frozen.pb").read_bytes()
    with serving(package(tmp_path, script, config("TensorFlow"), frozen__pb=frozen)) as server:
        row = pixels(digits.pictures[0]).ravel().tolist()
        assert server.client.post("/", json={"images": [row]}).json() == digits.labels[:1]
