"""Every dialect's packages on nodes: whatever they answer there, they answer here too. All in one server each."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from support import mlflow, modelarts
from support.evals import single
from support.ray_cluster import RayCluster
from support.server import PACKAGES, ROOT, Server, serving
from support.traffic import SOAK

pytestmark = pytest.mark.timeout(1200)
EXAMPLES = ROOT / "examples"
PNG = "image/png"


@dataclass(frozen=True)
class Asked:
    """A package, or a model file that is made for these tests, and a request on a route of its platform."""

    name: str
    path: str
    request: dict[str, Any]
    file: str = ""
    fleeting: tuple[str, ...] = ()
    """Fields of its answer that are new with every request, by the platform's contract."""

    def package(self, made: Path) -> str:
        """What is served, by a name of its own."""
        folder = made if self.file else EXAMPLES if (EXAMPLES / self.name).is_dir() else PACKAGES
        return f"{self.model}={folder / (self.file or self.name)}"

    @property
    def model(self) -> str:
        return self.name.replace("/", "-")

    def of(self, server: Server) -> tuple[int, str, Any]:
        """What a server answers."""
        answer = server.client.post(f"/models/{self.model}{self.path}", timeout=120, **self.request)
        told = body_of(answer)
        for name in self.fleeting:
            assert told.pop(name) is not None
        return answer.status_code, answer.headers["content-type"], told


def body_of(answer: httpx.Response) -> Any:
    is_json = "json" in answer.headers["content-type"] and "ndjson" not in answer.headers["content-type"]
    return answer.json() if is_json else answer.content


def picture(example: str, name: str = "seven.png") -> bytes:
    return (EXAMPLES / example / name).read_bytes()


def upload(example: str, field: str, name: str = "seven.png") -> dict[str, Any]:
    return {"files": {field: (name, picture(example, name), PNG)}}


def text(path: str) -> dict[str, Any]:
    return {"json": json.loads((EXAMPLES / path).read_text())}


ROW = {"json": {"x": [[1, 2, 3, 4]]}}
LIGHT = [
    Asked("digits", "/predict", {"content": picture("digits"), "headers": {"content-type": PNG}}),
    Asked("bare", "/predict", {"content": picture("bare"), "headers": {"content-type": PNG}}),
    Asked("evals", "/v1/eval", {"json": single(picture("evals"))}),
    Asked("megflow/digits", "/analyze/any", {
        "content": picture("megflow/digits"), "headers": {"content-type": PNG}}),
    Asked("tiinfer", "/inference", text("tiinfer/request.json")),
    Asked("triton", "/predict", text("triton/request.json")),
    Asked("typed", "/predict", {"files": {"image": ("七.png", b"12345", PNG)}, "data": {"threshold": "0.25"}}),
    Asked("azureml", "/score", text("azureml/request.json")),
    Asked("cog", "/predictions", text("cog/request.json"), fleeting=("started_at", "completed_at", "metrics")),
    Asked("runpod", "/runsync", text("runpod/test_input.json"), fleeting=("id", "delayTime", "executionTime")),
    Asked("hfendpoint", "/", {"content": picture("hfendpoint"), "headers": {"content-type": PNG}}),
    Asked("paieas", "/", {"content": picture("paieas"), "headers": {"content-type": PNG}}),
    Asked("sagemaker", "/invocations", text("sagemaker/request.json")),
    Asked("torchserve", "/predictions/torchserve", text("torchserve/request.json")),
    Asked("truss", "/v1/models/model:predict", text("truss/request.json")),
    Asked("modelarts_echo", "/", {"json": {"data": [1, 2]}}),
    Asked("paddle_text", "/predict", {"json": {"text": "two words"}}),
]  # fmt: skip
HEAVY = [
    Asked("tiinfer_pipeline", "/inference", {"json": {"number": 4}}),
    Asked("stream", "/predict", {"json": {"count": 3}}),
    Asked("routes", "/words", {"json": "one two"}),
    Asked("modelarts", "/", upload("modelarts/model", "images")),
    Asked("paddle", "/predict", upload("paddle/images", "img_path", "demo.png")),
    Asked("torch", "/predict", ROW, "exported.pt2"),
    Asked("tensorflow", "/predict", ROW, "saved/1"),
    Asked("sklearn", "/predict", {"json": {"input": [[1, 2, 3, 4]]}}, "iris.joblib"),
    Asked("mindspore", "/", ROW, "sums"),
]
MINDSPORE = """
import mindspore
from model_service.model_service import SingleNodeService


class Sums(SingleNodeService):
    def _inference(self, data):
        return {"sum": float(mindspore.Tensor(data["x"], mindspore.float32).sum().asnumpy())}
"""
FRAMEWORKS = ("torch", "tensorflow", "trees")
ASKED = [*LIGHT, *HEAVY] if SOAK else LIGHT


def models(folder: Path) -> list[str]:
    """What is served, with small model files of the heavy frameworks where they are tested."""
    for framework in FRAMEWORKS if SOAK else ():
        subprocess.run([sys.executable, ROOT / "tests/support/make_models.py", framework, folder], check=True)
    modelarts.package(folder / "sums", MINDSPORE, modelarts.config("MindSpore"))
    return [asked.package(folder) for asked in ASKED]


def test_packages_answer_on_nodes_as_they_do_here(inside: RayCluster, tmp_path: Path) -> None:
    """One test, and so one server here and one with its workers on nodes."""
    first, *others = models(tmp_path)
    flags = (*inside.flags, "--worker-resources", "cpu=0.1", "--load-at-once", "4", "--python", sys.executable)
    with ExitStack() as stack:
        here, there = (stack.enter_context(serving(Path(first), *others, *more, ready=False)) for more in ((), flags))
        wanted = answers(here)
        assert {status for status, _, _ in wanted.values()} == {200}, wanted
        assert answers(there) == wanted
        for asked in ASKED:
            assert there.metric("panglot_node_workers", model=asked.model) >= 1


def test_a_model_of_mlflow_answers_on_nodes_as_it_does_here(inside: RayCluster) -> None:
    """In a server of its own: its interpreter is the one with mlflow."""
    asked = Asked("mlflow", "/invocations", text("mlflow/serving_input_example.json"))
    python = ("--python", mlflow.python())
    with ExitStack() as stack:
        here, there = (
            stack.enter_context(serving(Path(asked.package(EXAMPLES)), *python, *more, ready=False))
            for more in ((), (*inside.flags, "--worker-resources", "cpu=0.1"))
        )
        for server in (here, there):
            server.wait_ready(600)
        wanted = asked.of(here)
        assert wanted[0] == 200, wanted
        assert asked.of(there) == wanted
        assert there.metric("panglot_node_workers", model="mlflow") >= 1


def answers(server: Server) -> dict[str, tuple[int, str, Any]]:
    """What every package answers, by its name."""
    server.wait_ready(600)
    return {asked.model: asked.of(server) for asked in ASKED}
