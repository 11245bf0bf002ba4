"""Archives that torch-model-archiver itself makes: every form of a handler, in each of its formats."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.server import serving
from support.torchserve import really_archived

pytestmark = pytest.mark.rest("torch-model-archiver is installed, and its base handler needs torch")
CLASS = """
import json


class Words:
    def initialize(self, context):
        folder = context.system_properties["model_dir"]
        with open(folder + "/words.json") as file:
            self.words = json.load(file)

    def handle(self, data, context):
        return [self.words[row["body"]] for row in data]
"""
FUNCTION = """
import json


def NAME(data, context):
    if data is None:
        return None
    return [json.load(open("words.json"))[row["body"]] for row in data]
"""
SERVICE = """
from ts.torch_handler.base_handler import BaseHandler
from words import WORDS


class First(BaseHandler):
    def initialize(self, context):
        self.words, self.initialized = WORDS, True

    def handle(self, data, context):
        return [self.words[row["body"]] for row in data]


class Second(First):
    pass


_service = Second()


def handle(data, context):
    if not _service.initialized:
        _service.initialize(context)
    return _service.handle(data, context) if data is not None else None
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
SCALING = """
import torch
from ts.torch_handler.base_handler import BaseHandler


class Scaling(BaseHandler):
    def preprocess(self, data):
        return torch.as_tensor([row["body"] for row in data], dtype=torch.float32)
"""
WORDS = {"words.json": '{"hi": "hello"}'}
FORMS = {
    "class": (CLASS, "handler.py", WORDS),
    "function": (FUNCTION.replace("NAME", "handle"), "handler.py", WORDS),
    "named-function": (FUNCTION.replace("NAME", "predict"), "handler:predict", WORDS),
    "service": (SERVICE, "handler.py", {"words.py": "WORDS = {'hi': 'hello'}\n"}),
}


@pytest.mark.document("torchserve.33")
@pytest.mark.parametrize("ending", [".mar", ".tar.gz", ""], ids=["mar", "tgz", "no-archive"])
@pytest.mark.parametrize("form", FORMS)
def test_an_archive_of_the_archiver_is_served(form: str, ending: str, tmp_path: Path) -> None:
    text, handler, files = FORMS[form]
    folder = tmp_path / "sources"
    folder.mkdir()
    for name, content in {"handler.py": text, **files}.items():
        (folder / name).write_text(content)
    with serving(really_archived(folder, tmp_path / f"greeter{ending}", handler, "2.5")) as server:
        for path in ("/predictions/greeter", "/predictions/greeter/2.5"):
            answer = server.client.post(path, content="hi", headers={"content-type": "text/plain"})
            assert (answer.status_code, answer.text) == (200, "hello"), server.log


@pytest.mark.document("torchserve.33", "torchserve.05")
@pytest.mark.parametrize("handler", ["scaling.py", "base_handler"])
def test_weights_a_model_file_and_a_configuration_are_in_the_archive(handler: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    folder = tmp_path / "sources"
    folder.mkdir()
    (folder / "net.py").write_text(NET)
    (folder / "model-config.yaml").write_text("batchSize: 4\nmaxBatchDelay: 10\nminWorkers: 1\n")
    if handler.endswith(".py"):
        (folder / handler).write_text(SCALING)
    torch.save({"scale": torch.tensor([3.0])}, folder / "weights.pth")
    more = {"model_file": "net.py", "serialized_file": "weights.pth", "config_file": "model-config.yaml"}
    with serving(really_archived(folder, tmp_path / "scale.mar", handler, **more)) as server:
        (told,) = server.client.get("/models/scale").json()
        assert (told["batchSize"], told["maxBatchDelay"]) == (4, 10)
        answer = server.client.post("/predictions/scale", json=[1, 2])
        if handler.endswith(".py"):
            assert (answer.status_code, answer.json()) == (200, [3, 6]), server.log
        else:
            # The base handler makes a tensor of the rows as they are, which are dicts: as it is in the original.
            assert answer.status_code == 503
