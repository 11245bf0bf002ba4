"""What the document says of files beside a model, its own lines in a script: labels, and models of other kinds."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from support.documents import code
from support.modelarts import config, document_script, package
from support.server import ROOT, serving

SERVICE = """\
import json
import os

from model_service.{module} import {base}


class Service({base}):
    def __init__(self, {parameters}):
        self.model_path = model_path
{lines}
    def _preprocess(self, data):
        return data

    def _inference(self, data):
        return {{"label": self.label, "absolute": os.path.isabs(self.model_path)}}

    def _postprocess(self, data):
        return data
"""
FOLDER, FILE = (66, 68), (74, 77)
"""Where the document reads labels, from below a folder and from beside a file."""
TWO, ONE = "model_name, model_path", "model_path"
ENGINES = {
    "TensorFlow": ("tfserving_model_service", "TfServingBaseService", TWO, "variables.data", FOLDER),
    "Caffe": ("caffe_model_service", "CaffeBaseService", TWO, "net.caffemodel", FOLDER),
    "PyTorch": ("pytorch_model_service", "PTServingBaseService", TWO, "net.pth", FILE),
    "Scikit_Learn": ("python_model_service", "XgSklServingBaseService", ONE, "model.m", FILE),
}


@pytest.mark.document("modelarts.14", "modelarts.15", "modelarts.16")
@pytest.mark.parametrize("engine", ENGINES)
def test_labels_are_read_as_the_document_reads_them(tmp_path: Path, engine: str) -> None:
    module, base, parameters, weights, where = ENGINES[engine]
    listing = code("modelarts", *where, indent=" " * 8)
    script = SERVICE.format(module=module, base=base, parameters=parameters, lines=listing)
    folder = package(tmp_path / "model", script, config(engine), label__json='["cat", "dog"]')
    (folder / weights).write_bytes(b"")
    with serving(tmp_path) as server:
        answer = server.client.post("/", json={"data": {"req_data": [{}]}})
        found = answer.json()["data"]["resp_data"] if engine == "Scikit_Learn" else answer.json()
        assert found == {"label": ["cat", "dog"], "absolute": True}


@pytest.mark.document("modelarts.36")
def test_several_models_in_one_service(tmp_path: Path) -> None:
    """The document's note with its quotes, and with its second model."""
    example = ROOT / "examples" / "modelarts" / "model"
    note = document_script("onnx").replace("test.onnx)", "'test.onnx')").replace("test2.onnx)", "'test2.onnx')")
    script = note.replace("# self.model_path2", "self.model_path2") + (
        "        import onnxruntime\n"
        "        paths = (self.model_path, self.model_path2)\n"
        "        self.sessions = [onnxruntime.InferenceSession(path) for path in paths]\n\n"
        "    def _inference(self, data):\n"
        "        import numpy\n"
        "        rows = numpy.array(data['rows'], numpy.float32)\n"
        "        return [session.run(None, {'images': rows})[0].argmax(axis=1) for session in self.sessions]\n"
    )
    model = (example / "digits.onnx").read_bytes()
    package(tmp_path, script, config("TensorFlow"), test__onnx=model, test2__onnx=model)
    seven = Image.open(example / "seven.png").convert("L").resize((8, 8), Image.Resampling.BOX)
    with serving(tmp_path) as server:
        answer = server.client.post("/", json={"rows": [[value / 255 for value in seven.tobytes()]]})
        assert answer.json() == [[7], [7]]
