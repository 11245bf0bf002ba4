"""Every dialect's packages on nodes: whatever they answer there, they answer here too. All in one server each."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from support import modelarts
from support.evals import single
from support.ray_cluster import RayCluster
from support.server import PACKAGES, ROOT, Server, serving
from support.traffic import SOAK

pytestmark = pytest.mark.timeout(600)
EXAMPLES = ROOT / "examples"
PNG = "image/png"


@dataclass(frozen=True)
class Asked:
    """A package, or a model file that is made for these tests, and a request on a route of its platform."""

    name: str
    path: str
    request: dict[str, Any]
    file: str = ""

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
        return answer.status_code, answer.headers["content-type"], body_of(answer)


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


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with small model files of the heavy frameworks, where they are tested."""
    folder = tmp_path_factory.mktemp("made")
    for framework in FRAMEWORKS if SOAK else ():
        subprocess.run([sys.executable, ROOT / "tests/support/make_models.py", framework, folder], check=True)
    modelarts.package(folder / "sums", MINDSPORE, modelarts.config("MindSpore"))
    return folder


@pytest.fixture(scope="module")
def servers(cluster: RayCluster, made: Path) -> Iterator[tuple[Server, Server]]:
    """A server here, and one with its workers on nodes, of the same packages."""
    first, *others = [asked.package(made) for asked in ASKED]
    with ExitStack() as stack:
        stack.enter_context(cluster.network.entered())
        flags = (*cluster.flags, "--place", "cpu=0.1", "--load-at-once", "4", "--python", sys.executable)
        both = [stack.enter_context(serving(Path(first), *others, *more, ready=False)) for more in ((), flags)]
        yield both[0].wait_ready(300), both[1].wait_ready(300)


@pytest.mark.parametrize("asked", ASKED, ids=lambda asked: asked.model)
def test_a_package_answers_on_nodes_as_it_does_here(servers: tuple[Server, Server], asked: Asked) -> None:
    here, there = servers
    wanted = asked.of(here)
    assert wanted[0] == 200, wanted
    assert asked.of(there) == wanted
    assert there.metric("panglot_node_workers", model=asked.model) >= 1
