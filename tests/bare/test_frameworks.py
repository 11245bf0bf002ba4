"""Model files of the other frameworks, each served as it is."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.models import all_of
from support.server import ROOT, panglot, serving

SOURCE = str(ROOT / "src")
MAKER = ROOT / "tests" / "support" / "make_models.py"
ROW = [1.0, 2.0, 3.0, 4.0]
IRIS = [[5.1, 3.5, 1.4, 0.2], [6.7, 3.0, 5.2, 2.3]]
CONFIGURED = """
platform: "pytorch_libtorch"
max_batch_size: 8
input [ { name: "INPUT__0" data_type: TYPE_FP32 dims: [ 4 ] } ]
output [
  { name: "OUTPUT__1" data_type: TYPE_FP32 dims: [ 1 ] },
  { name: "OUTPUT__0" data_type: TYPE_FP32 dims: [ 4 ] }
]
dynamic_batching { }
"""
"""As Triton has it for modules, whose tensors have no names: by place."""
DECLARED = '[[inputs]]\nname = "x"\ndatatype = "FP32"\nshape = [-1, 4]\n'


def make(framework: str, folder: Path, *files: str) -> list[dict[str, Any]]:
    """Write the files of a framework; what those given as KIND=FILE say and do, in the process that wrote them."""
    command = [sys.executable, str(MAKER), framework, str(folder), *files]
    made = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": SOURCE}
    )
    assert made.returncode == 0, made.stderr
    answers: list[dict[str, Any]] = json.loads(made.stdout.splitlines()[-1])
    return answers


def proven(name: str = "") -> str:
    """The line that says that rows may share a batch. Whether they do is measured, so it depends on what else runs."""
    return (f"{name} " if name else "") + "requests are .*: a row gets the same answer in a batch as alone, "


def asked(path: Path, value: Any) -> Any:
    """The answer of a server to a request; its workers prove that rows may share runs."""
    with serving(path) as server:
        answer = server.predict(value)
        assert answer.status_code == 200, answer.text
        server.wait_log(proven())
        assert server.predict({"nothing": 1, "of it": 2}).status_code == 400
        return answer.json()


TWICE = {"output_0": [[2, 4, 6, 8]], "output_1": [10]}


@pytest.mark.timeout(400)
def test_torch(tmp_path: Path) -> None:
    exported, scripted = make("torch", tmp_path, "pt2=exported.pt2", "torchscript=scripted.pt")
    given = [["output_0", "FP32", [-1, 4]], ["output_1", "FP32", [-1]]]
    for answer in (exported, scripted):
        assert answer == {"tensors": [["x", "FP32", [-1, 4]], *given], "outputs": TWICE, "by_rows": True}
    models = tmp_path / "models"
    for name, file in (("declared", "scripted.pt"), ("configured", "scripted.pt"), ("exported", "exported.pt2")):
        (models / name / "1").mkdir(parents=True)
        shutil.copy(tmp_path / file, models / name / "1" / f"model{Path(file).suffix}")
    (models / "declared" / "1" / "panglot.toml").write_text(DECLARED)
    (models / "configured" / "config.pbtxt").write_text(CONFIGURED)
    with serving(all_of(models), ready=False) as server:
        server.wait_ready(180)
        for name in ("declared", "exported"):
            assert server.client.post(f"/models/{name}/predict", json={"x": [ROW]}).json() == TWICE
            server.wait_log(proven(name))
        answer = server.client.post("/models/configured/predict", json={"INPUT__0": [ROW]}).json()
        assert answer == {"OUTPUT__0": [[2, 4, 6, 8]], "OUTPUT__1": [10]}
        server.wait_log(proven("configured"))
        about = server.client.get("/v2/models/configured/config").json()
        assert (about["max_batch_size"], about["input"][0]["dims"]) == (8, [4])
        assert server.client.post("/models/declared/predict", json={"nothing": 1}).status_code == 400


@pytest.mark.timeout(400)
def test_saved_model(tmp_path: Path) -> None:
    [answer] = make("tensorflow", tmp_path, "savedmodel=saved/1")
    assert answer["outputs"] == {"twice": [[2, 4, 6, 8]], "text": ["10.0"]}
    assert sorted(answer["tensors"]) == [["text", "BYTES", [-1]], ["twice", "FP32", [-1, 4]], ["x", "FP32", [-1, 4]]]
    assert answer["by_rows"]
    (tmp_path / "models" / "saved" / "1").mkdir(parents=True)
    shutil.move(tmp_path / "saved" / "1", tmp_path / "models" / "saved" / "1" / "model.savedmodel")
    with serving(all_of(tmp_path / "models"), ready=False) as server:
        server.wait_ready(180)
        assert server.client.post("/models/saved/predict", json=[ROW]).json() == answer["outputs"]
        server.wait_log(proven("saved"))


def test_paddle(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples" / "paddle" / "inference", tmp_path / "digits")
    with serving(tmp_path / "digits") as server:
        document = server.client.get("/openapi.json").json()["info"]["description"]
        assert "It takes " in document
        server.wait_log("requests are (batched|not batched)")
        assert server.predict({}).status_code == 400


@pytest.fixture(scope="module")
def trees(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trees")
    make("trees", folder)
    return folder


def test_sklearn(trees: Path) -> None:
    """Outputs by the names MLServer gives them, the input by any name; and a word about pickles."""
    with serving(trees / "iris.joblib") as server:
        for body in (IRIS, {"predict": IRIS}, {"input-0": IRIS}):
            answer = server.predict(body).json()
            assert list(answer) == ["predict", "predict_proba"]
            assert answer["predict"] == [0, 2]
            assert [len(row) for row in answer["predict_proba"]] == [3, 3]
        server.wait_log("loading a pickle runs whatever code is in it")
        assert server.predict([[1, 2, 3]]).status_code == 400
    with serving(trees / "words.pkl") as server:
        assert server.predict(["good", "bad day"]).json()["predict"] == ["good", "bad"]


def test_boosters(trees: Path) -> None:
    for name in ("trees.json", "leaves.txt"):
        probabilities = asked(trees / name, IRIS)["predict"]
        assert [row.index(max(row)) for row in probabilities] == [0, 2]


def test_a_missing_library_is_named(trees: Path, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "empty")], check=True)
    ended = panglot("serve", str(trees / "leaves.txt"), "--port", "0", "--python", str(tmp_path / "empty/bin/python"))
    assert ended.returncode == 3
    assert "lightgbm runs this file, and is not installed for" in ended.stderr
    assert "(fix: pip install lightgbm there, or name another --python)" in ended.stderr
