"""Handlers over those that the platform brings, with weights of every kind; torch and torchvision are real."""

from __future__ import annotations

import base64
import json
import shutil
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from support import torchserve
from support.models import all_of
from support.server import PACKAGES, Server, panglot, serving
from support.torchserve import archive

pytestmark = [pytest.mark.rest("needs torch and torchvision"), pytest.mark.filterwarnings("ignore::DeprecationWarning")]
FLOATS = """
import torch
from ts.torch_handler.base_handler import BaseHandler


class Floats(BaseHandler):
    def preprocess(self, data):
        return torch.tensor([row.get("data") or row.get("body") for row in data], dtype=torch.float32)
"""
ABOUT = (
    FLOATS
    + """
    def postprocess(self, data):
        names = ("mapping", "initialized", "explain", "target", "profiler_args", "map_location")
        known = {name: getattr(self, name) for name in names}
        known["device"], known["manifest"] = str(self.device), self.manifest["model"]["modelName"]
        known["path"], known["compiled"] = self.model_pt_path.rpartition("/")[2], type(self.model).__name__
        known["same"] = self.context.model_yaml_config == self.model_yaml_config
        return [{"values": row.tolist(), **known} for row in data]
"""
)
ONNX = """
import numpy
from ts.torch_handler.base_handler import BaseHandler


class Runs(BaseHandler):
    def preprocess(self, data):
        return numpy.array([row["body"] for row in data], dtype=numpy.float32)

    def inference(self, data):
        return self.model.run(None, {self.model.get_inputs()[0].name: data})[0]
"""
NET = """
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.zeros(1))

    def forward(self, values):
        return values * self.scale
"""
TENSOR = """
import torch


def handle(data, context):
    return [torch.tensor([1.0, 2.0])] * len(data or ())
"""


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


def scripted(torch: Any, file: Path) -> None:
    """A TorchScript model that doubles."""

    class Doubles(torch.nn.Module):
        def forward(self, values: torch.Tensor) -> torch.Tensor:
            return values * 2.0

    example = torch.zeros(1, 2)
    torch.jit.trace(Doubles(), example).save(str(file))


def package(folder: Path, handler: str, **files: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "handler.py").write_text(handler)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)
    return folder


def asked(server: Server, model: str, value: Any) -> Any:
    answer = server.client.post(f"/predictions/{model}", json=value)
    assert answer.status_code == 200, server.log
    return answer.json()


@pytest.mark.document("torchserve.43", "torchserve.44", "torchserve.45")
def test_torchscript_labels_and_compilation(torch: Any, tmp_path: Path) -> None:
    labels = {"0": "cat", "1": ["n2", "dog"]}
    names = {"object_type_names": ["back", "cat"]}
    package(tmp_path / "texts", ABOUT, index_to_name__json=json.dumps(labels))
    package(tmp_path / "names", ABOUT, index_to_name__json=json.dumps(names))
    config = {"model-config__yaml": "pt2: nothing-of-that-name\n"}
    package(tmp_path / "compiled", ABOUT, **config)
    config = {"model-config__yaml": "pt2:\n  compile:\n    enable: true\n    backend: eager\n"}
    package(tmp_path / "eagerly", ABOUT, net__py=NET, **config)
    torch.save({"scale": torch.tensor([2.0])}, tmp_path / "eagerly" / "weights.pth")
    for name in ("texts", "names", "compiled"):
        scripted(torch, tmp_path / name / "model.pt")
    with serving(all_of(tmp_path)) as server:
        told = asked(server, "texts", [1, 2])
        assert told == {
            "values": [2.0, 4.0], "mapping": {"0": "cat", "1": "dog"}, "initialized": True, "explain": False,
            "target": 0, "profiler_args": {}, "map_location": "cpu", "device": "cpu", "manifest": "texts",
            "path": "model.pt", "compiled": "RecursiveScriptModule", "same": True,
        }  # fmt: skip
        assert asked(server, "names", [1, 2])["mapping"] == {"0": "back", "1": "cat"}
        told = asked(server, "compiled", [1, 2])
        assert (told["values"], told["mapping"]) == ([2.0, 4.0], None)
        told = asked(server, "eagerly", [1, 2])
        assert (told["values"], told["compiled"]) == ([2.0, 4.0], "OptimizedModule")
        assert server.client.post("/predictions/texts", json=["no", "numbers"]).status_code == 503


@pytest.mark.document("torchserve.43")
def test_onnx(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    helper: Any = pytest.importorskip("onnx.helper")
    kind = helper.make_tensor_value_info
    node = helper.make_node("Add", ["x", "x"], ["y"])
    graph = helper.make_graph([node], "adds", [kind("x", 1, [None, 2])], [kind("y", 1, [None, 2])])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    folder = package(tmp_path / "adds", ONNX)
    (folder / "adds.onnx").write_bytes(made.SerializeToString())
    with serving(folder) as server:
        assert asked(server, "adds", [1.5, 2]) == [3.0, 4.0]


@pytest.mark.document("torchserve.43", "torchserve.57")
def test_weights_that_cannot_be_loaded(torch: Any, tmp_path: Path) -> None:
    done = panglot("serve", str(package(tmp_path / "none", FLOATS)), "--port", "0")
    assert (done.returncode, "No model weights could be loaded" in done.stderr) == (3, True), done.stderr
    folder = package(tmp_path / "whole", FLOATS, net__py="import torch\n\n\nclass Net(torch.nn.Module):\n    pass\n")
    torch.save(torch.nn.Linear(2, 1), folder / "whole.pth")
    done = panglot("serve", str(folder), "--port", "0")
    told = " ".join(done.stderr.split())
    assert done.returncode == 3
    assert "whole.pth" in told
    assert "weights_only" in told


@pytest.mark.document("torchserve.49")
def test_a_tensor_is_saved_and_every_answer_has_an_id(torch: Any, tmp_path: Path) -> None:
    with serving(package(tmp_path / "tensors", TENSOR)) as server:
        answer = server.client.post("/predictions/tensors", content="x")
        assert torch.load(BytesIO(answer.content)).tolist() == [1.0, 2.0]
        for path in ("/predictions/tensors", "/predictions/nope"):
            assert server.client.post(path).headers["x-request-id"]


# Pictures


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """Torchvision, made to work with a torch that it was not built for."""
    return {"PYTHONPATH": str(torchserve.stubs(tmp_path / "stubs"))}


def white(size: int = 28) -> bytes:
    image = pytest.importorskip("PIL.Image")
    stream = BytesIO()
    image.new("RGB", (size, size), "white").save(stream, "PNG")
    return stream.getvalue()


@pytest.mark.document("torchserve.46", "torchserve.40")
def test_a_classifier_of_ones_own(torch: Any, tmp_path: Path, env: dict[str, str]) -> None:
    folder = shutil.copytree(PACKAGES / "torchserve_digits", tmp_path / "digits")
    weights = torch.zeros(10, 28 * 28)
    weights[9] = 1.0
    torch.save({"fc.weight": weights, "fc.bias": torch.tensor([0.1] + [0.0] * 9)}, folder / "digits.pt")
    with serving(folder, env=env) as server:
        path, picture = "/predictions/digits/1.0", white()
        assert server.client.post(path, content=picture).text == "nine", server.log
        assert server.client.post(path, files={"data": ("digit.png", picture)}).text == "nine"
        text = base64.b64encode(picture).decode()
        assert server.client.post(path, content=text, headers={"content-type": "text/plain"}).text == "nine"
        dark = [[[-1.0] * 28] * 28]
        assert server.client.post(path, json={"data": 1}).status_code == 503
        assert server.client.post(path, json=dark).text == "zero"
        assert server.client.post(path, content=b"no picture").status_code == 503
        assert server.client.post(path, content=b"").status_code == 503


# What handlers import


IMPORTS = {
    "ts.context": "Context RequestProcessor",
    "ts.handler_utils.micro_batching": "MicroBatching",
    "ts.handler_utils.timer": "timed",
    "ts.handler_utils.utils": "send_intermediate_predict_response import_class",
    "ts.handler_utils.text_utils": "get_tokenizer ngrams_iterator",
    "ts.metrics.caching_metric": "CachingMetric",
    "ts.metrics.dimension": "Dimension",
    "ts.metrics.metric_type_enum": "MetricTypes",
    "ts.protocol.otf_message_handler": "send_intermediate_predict_response",
    "ts.torch_handler.base_handler": "BaseHandler",
    "ts.torch_handler.image_classifier": "ImageClassifier",
    "ts.torch_handler.image_segmenter": "ImageSegmenter",
    "ts.torch_handler.object_detector": "ObjectDetector",
    "ts.torch_handler.text_classifier": "TextClassifier",
    "ts.torch_handler.text_handler": "TextHandler",
    "ts.torch_handler.vision_handler": "VisionHandler",
    "ts.torch_handler.request_envelope.base": "BaseEnvelope",
    "ts.utils.util": "PredictionException list_classes_from_module map_class_to_label load_label_mapping",
}


@pytest.mark.document("torchserve.47", "torchserve.46")
def test_the_modules_that_handlers_import(torch: Any, tmp_path: Path, env: dict[str, str]) -> None:
    lines = [f"from {module} import {', '.join(names.split())}" for module, names in IMPORTS.items()]
    # Nobody has captum here, which the original cannot be imported without.
    shutil.rmtree(tmp_path / "stubs" / "captum")
    text = "\n".join(lines) + "\n\n\ndef handle(data, context):\n    return ['all there'] * len(data or ())\n"
    folder = package(tmp_path / "m", text)
    with serving(archive(folder, tmp_path / "m.mar", "handler.py"), env=env) as server:
        assert server.client.post("/predictions/m").text == "all there"
