"""TorchServe itself beside Panglot: the same archive, the same requests, good and bad."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import environments, originals, programs
from support.originals import Case, Original, ask, differs
from support.server import PACKAGES, Server, serving
from support.torchserve import archive

pytestmark = pytest.mark.rest("TorchServe needs Java and torch, and half a minute to start")
JSON = {"Content-Type": "application/json"}


def act(name: str, differs: str = "") -> Case:
    return Case("POST", "/predictions/echo", f'{{"act": "{name}"}}', JSON, differs=differs)


TYPE = "the content type of answers"
CASES = (
    Case("GET", "/ping"),
    Case("POST", "/predictions/echo", '{"a": 1}', JSON, differs=TYPE),
    Case("POST", "/predictions/echo", '{"a": 1}', {"Content-Type": "application/json; charset=utf-8"}, differs=TYPE),
    Case("POST", "/predictions/echo", "{bad", JSON, differs=TYPE),
    Case("POST", "/predictions/echo", "[1]", {"Content-Type": "Application/JSON"}, differs=TYPE),
    Case("POST", "/predictions/echo", "hi", {"Content-Type": "text/plain"}, differs=TYPE),
    Case("POST", "/predictions/echo", b"raw", {"Content-Type": "application/octet-stream"}, differs=TYPE),
    Case("POST", "/predictions/echo", "a=1&b=2", {"Content-Type": "application/x-www-form-urlencoded"}, differs=TYPE),
    Case("POST", "/predictions/echo", '{"a": 1}', {"Content-Type": "application/x-www-form-urlencoded"}, differs=TYPE),
    Case("POST", "/predictions/echo", options={"files": {"data": ("x", b"abc")}, "data": {"n": "hi"}}, differs=TYPE),
    Case("GET", "/predictions/echo", differs=TYPE),
    Case("PUT", "/predictions/echo", "1", JSON, differs=TYPE),
    Case("POST", "/predictions/echo?q=1", "1", JSON, differs=TYPE),
    Case("POST", "/predictions/echo/1.0/a/b", "1", JSON, differs=TYPE),
    Case("POST", "/invocations?model_name=echo&q=1", "1", JSON, differs=TYPE),
    Case("POST", "/models/echo/invoke", "1", JSON, differs=TYPE),
    Case("POST", "/v1/models/echo:predict", "1", JSON, differs=TYPE),
    act("bytes", TYPE),
    act("text", TYPE),
    act("stream", TYPE),
    act("status"),
    act("raise"),
    act("teapot"),
    act("cuda"),
    act("set"),
    Case("POST", "/predictions/nope", "1", JSON),
    Case("POST", "/predictions/echo/9.0", "1", JSON),
    Case("GET", "/predictions"),
    Case("GET", "/nope"),
)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return archive(PACKAGES / "torchserve_echo", tmp_path_factory.mktemp("store") / "echo.mar", "handler.py", "1.0")


@pytest.fixture(scope="module")
def ours(model: Path) -> Iterator[Server]:
    with serving(model) as server:
        yield server


@pytest.fixture(scope="module")
def original(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Original]:
    programs.need("java")
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("torchserve")
    config = folder / "config.properties"
    others = ("management_address", "metrics_address")
    lines = [f"{name}=http://127.0.0.1:{free_port()}" for name in others]
    lines += [f"grpc_inference_port={free_port()}", f"grpc_management_port={free_port()}"]
    lines += ["inference_address=http://127.0.0.1:${env:TS_PORT}", "default_workers_per_model=1"]
    env = environments.over_ours("torchserve-0.12.0", "torchserve==0.12.0", "torch-model-archiver==0.12.0")
    path = os.pathsep.join((os.path.dirname(sys.executable), env["PATH"]))
    # Its frontend starts `python` of the path, and reads the port from the file.
    starter = f"sed s/PORT/{originals.PORT}/ {config}.in > {config} && exec {sys.executable} -m ts.model_server"
    (folder / "config.properties.in").write_text("\n".join(lines).replace("${env:TS_PORT}", "PORT"))
    command = f"{starter} --start --foreground --ncs --disable-token-auth --model-store {model.parent} " \
              f"--models echo={model.name} --ts-config {config}"  # fmt: skip
    variables = {"PYTHONPATH": env["PYTHONPATH"], "PATH": path}
    with originals.running(["sh", "-c", command], folder, "/predictions/echo", env=variables) as running:
        yield running


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_same_request_has_the_same_answer(ours: Server, original: Original, case: Case) -> None:
    theirs, mine = ask(original.url, case), ask(ours.url, case)
    assert (mine.status, mine.body) == (theirs.status, theirs.body)
    if case.differs:
        assert differs("torchserve", case.differs)
        assert theirs.headers["content-type"] == ()
    else:
        assert mine.headers == theirs.headers
