"""What the base classes do when a script leaves it to them, and the services of packages without a script."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from support.modelarts import PT, TF, config, grey, package
from support.server import panglot, serving

EMPTY_TF = TF + "class Service(TfServingBaseService):\n    pass\n"


def pixels(picture: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(picture)), dtype=np.float32)


# PyTorch


def make(folder: Path, code: str) -> None:
    subprocess.run([sys.executable, "-c", code, str(folder)], check=True, capture_output=True, timeout=110)


@pytest.mark.document("modelarts.05", "modelarts.09", "modelarts.11")
def test_pytorch_calls_the_model_key_by_key(tmp_path: Path) -> None:
    """The weights file is the first by ending and name; old ways of calling torch only warn."""
    script = """
        import os

        import torch
        from model_service.pytorch_model_service import PTServingBaseService
        from torch.autograd import Variable

        class Service(PTServingBaseService):
            def __init__(self, model_name, model_path):
                super(Service, self).__init__(model_name, model_path)
                self.model = torch.nn.Linear(2, 2)
                self.model.load_state_dict(torch.load(self.model_path))
                folder = os.path.dirname(os.path.realpath(self.model_path))
                with open(os.path.join(folder, "label.json")) as file:
                    self.label = file.read()

            def _preprocess(self, data):
                return {key: Variable(torch.tensor(value), volatile=True) for key, value in data.items()}

            def _postprocess(self, data):
                return {"label": self.label, **data}
    """
    package(tmp_path, script, config("PyTorch"), label__json="cat", deep___a__pth=b"", z__pt=b"")
    code = """
import sys, torch
model = torch.nn.Linear(2, 2)
with torch.no_grad():
    model.weight.copy_(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    model.bias.zero_()
torch.save(model.state_dict(), sys.argv[1] + "/model_best.pth")
torch.save(model.state_dict(), sys.argv[1] + "/model_last.pth")
"""
    make(tmp_path, code)
    facts = json.loads(panglot("inspect", str(tmp_path), "--json").stdout)
    [reason] = facts["facts"]["model_path"]
    assert reason == (
        "model_best.pth (chosen before model_last.pth, z.pt, deep/a.pth: by depth, then ending, then name)"
    )
    with serving(tmp_path) as server:
        answer = server.client.post("/", json={"a": [1.0, 1.0], "b": [[0.0, 1.0]]})
        assert answer.json() == {"label": "cat", "a": [3.0, 7.0], "b": [[2.0, 4.0]]}
        assert server.client.post("/", json={"a": "text"}).status_code == 400


def test_pytorch_without_a_script_runs_torchscript_and_nothing_else(tmp_path: Path) -> None:
    code = """
import sys, torch

class Bright(torch.nn.Module):
    def forward(self, x):
        return x.mean(dim=(1, 2, 3))

torch.jit.trace(Bright(), torch.zeros(1, 3, 8, 8)).save(sys.argv[1] + "/good/bright.pt")
torch.save(torch.nn.Linear(2, 2).state_dict(), sys.argv[1] + "/bad/weights.pth")
"""
    for name in ("good", "bad"):
        package(tmp_path / name, config=config("PyTorch"))
    make(tmp_path, code)
    with serving(tmp_path / "good") as server:
        assert server.client.post("/", files={"images": ("a.png", grey(100))}).json() == {"images": [100.0]}
    done = panglot("serve", str(tmp_path / "bad"), "--port", "0")
    assert done.returncode == 3
    assert "is no TorchScript file: without a customize_service.py nothing says how to build its model" in done.stderr


def test_a_missing_model_is_told_at_load(tmp_path: Path) -> None:
    script = PT + "class Service(PTServingBaseService):\n    pass\n"
    with serving(package(tmp_path, script, config("PyTorch"))) as server:
        server.wait_log("self.model is None, and there is no _inference of the script's own: requests will fail")
        server.wait_log(r"model_path is the package's folder: it has no file ending in \.pth, \.pt")
        assert server.client.post("/", json={"x": 1}).status_code == 400


# Scikit_Learn and XGBoost

SKLEARN = """
import sys, joblib, numpy, xgboost
from sklearn.linear_model import LinearRegression

rows = numpy.random.default_rng(0).random((50, 2))
joblib.dump(LinearRegression().fit(rows, rows @ [1.0, 10.0]), sys.argv[1] + "/sklearn/model.m")
booster = xgboost.train({"max_depth": 2}, xgboost.DMatrix(rows, label=rows @ [1.0, 10.0]), 5)
for ending in ("json", "ubj"):
    booster.save_model(sys.argv[1] + "/saved." + ending)
print(booster.predict(xgboost.DMatrix([[0.5, 0.25]])).tolist())
"""


@pytest.fixture(scope="module")
def pickled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pickled")
    package(folder / "sklearn", config=config("Scikit_Learn"))
    made = subprocess.run(
        [sys.executable, "-c", SKLEARN, str(folder)], check=True, capture_output=True, text=True, timeout=110
    )
    (folder / "expected").write_text(made.stdout)
    return folder


def rows(*values: dict[str, float], **meta: str) -> dict[str, object]:
    return {**({"meta": meta} if meta else {}), "data": {"req_data": list(values)}}


@pytest.mark.document("modelarts.07")
def test_sklearn_without_a_script_keeps_the_order_of_features_and_loads_once(pickled: Path) -> None:
    with serving(pickled / "sklearn") as server:
        answer = server.client.post("/", json=rows({"z": 1.0, "a": 2.0}, {"a": 2.0, "z": 1.0}, uuid="7"))
        assert answer.json()["meta"] == {"uuid": "7"}
        found = [row["predictresult"] for row in answer.json()["data"]["resp_data"]]
        assert found == pytest.approx([21.0, 12.0])
        (pickled / "sklearn" / "model.m").rename(pickled / "sklearn" / "moved")
        try:
            assert server.client.post("/", json=rows({"z": 1.0, "a": 2.0})).status_code == 200
        finally:
            (pickled / "sklearn" / "moved").rename(pickled / "sklearn" / "model.m")
        answer = server.client.post("/", json=rows({"z": 1.0}))
        assert (answer.status_code, answer.json()["erno"]) == (500, "PY.0105")
        assert answer.json()["error_info"].startswith("ValueError: X has 1 features")


@pytest.mark.parametrize("ending", ["json", "ubj"])
def test_an_xgboost_booster_is_loaded_whatever_its_form(tmp_path: Path, pickled: Path, ending: str) -> None:
    package(tmp_path, config=config("XGBoost"))
    shutil.copy(pickled / f"saved.{ending}", tmp_path / "model.m")
    with serving(tmp_path) as server:
        answer = server.client.post("/", json=rows({"a": 0.5, "b": 0.25}))
        found = [row["predictresult"] for row in answer.json()["data"]["resp_data"]]
        assert found == pytest.approx(json.loads((pickled / "expected").read_text()))


def test_a_file_that_is_no_model_is_told_at_load(tmp_path: Path) -> None:
    package(tmp_path, config=config("Scikit_Learn"), model__m=b"garbage")
    done = panglot("serve", str(tmp_path), "--port", "0")
    assert done.returncode == 3
    assert "model.m holds no model: joblib: ValueError" in done.stderr
    (tmp_path / "model.m").unlink()
    done = panglot("serve", str(tmp_path), "--port", "0")
    assert (done.returncode, "there is no model file at" in done.stderr) == (3, True)


# Spark and the engines that are not here


def test_spark_is_named_when_it_is_missing(tmp_path: Path) -> None:
    script = """
        from model_service.spark_model_service import SparkServingBaseService

        class Service(SparkServingBaseService):
            def _preprocess(self, data):
                return self.spark.createDataFrame(data)
    """
    done = panglot("serve", str(package(tmp_path, script, config("Spark_MLlib"))), "--port", "0")
    assert done.returncode == 3
    assert "the package 'pyspark' is not installed" in done.stderr


PYSPARK = {
    "pyspark___sql__py": """
        class Row:
            def __init__(self, value):
                self.prediction = value

        class Frame:
            def __init__(self, rows, names):
                self.rows, self.names = rows, names

            def select(self, name):
                assert name == "prediction"
                return self

            def collect(self):
                return [Row(sum(row)) for row in self.rows]

        class Session:
            def createDataFrame(self, rows, names):
                return Frame(rows, names)

        class Builder:
            def master(self, where):
                assert where.startswith("local")
                return self

            def appName(self, name):
                return self

            def getOrCreate(self):
                return Session()

        class SparkSession:
            builder = Builder()
    """,
    "pyspark___ml__py": """
        class PipelineModel:
            @classmethod
            def load(cls, path):
                assert path.endswith("spark_model")
                return cls()

            def transform(self, frame):
                return frame
    """,
}


def test_spark_runs_a_saved_pipeline_in_a_local_session(tmp_path: Path) -> None:
    """Over a stand-in for pyspark, which is large and needs Java: the calls, not the arithmetic, are under test."""
    package(tmp_path / "p", config=config("Spark_MLlib"), spark_model___metadata=b"")
    package(tmp_path / "lib", **PYSPARK)
    with serving(tmp_path / "p", env={"PYTHONPATH": str(tmp_path / "lib")}) as server:
        answer = server.client.post("/", json=rows({"a": 1.0, "b": 2.5}, uuid="1"))
        assert answer.json() == {"meta": {"uuid": "1"}, "data": {"resp_data": [{"predictresult": 3.5}]}}


def test_hiai_says_what_it_needs(tmp_path: Path) -> None:
    script = """
        from hiai.nn_tensor_lib import NNTensor
        from hiai.nntensor_list import NNTensorList
        from model_service.hiai_model_service import HiaiBaseService

        class Service(HiaiBaseService):
            def _preprocess(self, data):
                return {key: NNTensorList(NNTensor(value)) for key, value in data.items()}
    """
    done = panglot("serve", str(package(tmp_path, script, config("MindSpore"))), "--port", "0")
    assert (done.returncode, "on an Ascend 310 chip; there is none here" in done.stderr) == (3, True)


def test_caffe_is_named_when_it_is_needed(tmp_path: Path) -> None:
    base = "from model_service.caffe_model_service import CaffeBaseService\n\n\n"
    script = base + "class Service(CaffeBaseService):\n    pass\n"
    package(tmp_path, script, config("Caffe"), deploy__prototxt="", net__caffemodel=b"")
    done = panglot("serve", str(tmp_path), "--port", "0")
    assert (done.returncode, "the package 'caffe' is not installed" in done.stderr) == (3, True)


TREE = """
import inspect

from mms.model_service.mxnet_model_service import MXNetBaseService
from model_service.caffe_model_service import CaffeBaseService
from model_service.frozen_graph_model_service import FrozenGraphBaseService
from model_service.hiai_model_service import HiaiBaseService
from model_service.model_service import ModelService, SingleNodeService
from model_service.python_model_service import XgSklServingBaseService
from model_service.pytorch_model_service import PTServingBaseService
from model_service.pytorch_vision_service import PTServingVisionService
from model_service.spark_model_service import SparkServingBaseService
from model_service.tfserving_model_service import TfServingBaseService
from model_service.tfserving_vision_service import TfServingVisionService

TWO, ONE = ["model_name", "model_path"], ["model_path"]
SHAPES = {
    CaffeBaseService: TWO, FrozenGraphBaseService: TWO, HiaiBaseService: TWO, PTServingBaseService: TWO,
    PTServingVisionService: TWO, TfServingBaseService: TWO, TfServingVisionService: TWO, XgSklServingBaseService: ONE,
    SparkServingBaseService: ONE, SingleNodeService: TWO,
    MXNetBaseService: ["model_name", "model_dir", "manifest", "gpu"],
}


class Service(SingleNodeService):
    def _inference(self, data):
        assert issubclass(SingleNodeService, ModelService)
        assert TfServingVisionService.__bases__ == (TfServingBaseService,)
        assert PTServingVisionService.__bases__ == (PTServingBaseService,)
        for kind, names in SHAPES.items():
            assert issubclass(kind, SingleNodeService)
            assert list(inspect.signature(kind.__init__).parameters)[1:] == names, kind
            for method in ("inference", "_preprocess", "_inference", "_postprocess", "ping", "signature"):
                assert callable(getattr(kind, method)), method
        assert ModelService("a", "b").ctx is None
        assert SingleNodeService("a", "b").inference("unchanged") == "unchanged"
        return sorted(kind.__name__ for kind in SHAPES)
"""


@pytest.mark.document("modelarts.03", "modelarts.07")
def test_every_base_class_is_importable_and_the_tree_is_the_platforms(tmp_path: Path) -> None:
    with serving(package(tmp_path, TREE, config("MindSpore"))) as server:
        answer = server.client.post("/", json={"a": 1})
        assert answer.status_code == 200, server.log
        assert len(answer.json()) == 11
