"""Clients of other servers ask this one, each in an environment of its own."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import environments
from support.rpc import address
from support.server import PACKAGES, ROOT, Server, serving
from support.traffic import SOAK

CLIENTS = Path(__file__).with_name("clients")


def large(name: str) -> pytest.MarkDecorator:
    """Marks a test whose environment is half a gigabyte: it is made by `make soak`, and used whenever it is there."""
    there = (environments.HOME / name / "whole").exists()
    return pytest.mark.skipif(not SOAK and not there, reason="make soak downloads its environment, half a gigabyte")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("tensors", "--grpc-port", "0") as running:
        yield running


def failed(server: Server, python: str, script: str, *arguments: str) -> dict[str, str]:
    """The checks of a client that fail, with what they say. There is at least one check."""
    where = (server.url.partition("://")[2], address(server))
    command = [python, str(CLIENTS / script), *where, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    said: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    assert said
    return {name: text for name, text in said.items() if text != "passed"}


def triton() -> str:
    """NVIDIA's client wants an older protobuf than frameworks do."""
    return environments.python_with("tritonclient-2.73", "tritonclient[http,grpc]==2.73.0")


@pytest.mark.timeout(600)
def test_nvidias_client_in_every_mode(server: Server) -> None:
    assert failed(server, triton(), "triton.py") == {}


EXAMPLES: dict[str, tuple[str, str, str]] = {
    "tiinfer": ("", "", "request.json"),
    "modelarts/model": ("", "images", "seven.png"),
    "evals": ("", "", "seven.png"),
    "paddle": ("", "", "images/demo.png"),
    "megflow/digits": ("", "", "seven.png"),
    "digits": ("", "", "seven.png"),
    "digits/digits.onnx": ("digits", "", ""),
}
"""What each example is asked with: model, tensor and file, where these matter."""


@pytest.mark.parametrize("example", EXAMPLES)
@pytest.mark.timeout(600)
def test_nvidias_client_asks_an_example_of_every_dialect(example: str) -> None:
    """One that knows no tensors gets its native body as one element of BYTES."""
    model, tensor, file = EXAMPLES[example]
    folder = ROOT / "examples" / example
    with serving(folder, "--grpc-port", "0") as server:
        model = model or server.client.post("/v2/repository/index").json()[0]["name"]
        path = str(folder / file) if file else ""
        assert failed(server, triton(), "native.py", model, tensor, path) == {}, server.log
        wrong = {"name": "x", "datatype": "INT8", "shape": [1], "data": [1.5]}
        bad = server.client.post(f"/v2/models/{model}/infer", json={"inputs": [wrong]})
        assert bad.status_code == 400
        assert isinstance(bad.json()["error"], str)


@pytest.mark.timeout(600)
def test_nvidias_client_asks_two_models_of_one_server() -> None:
    with serving("tensors", f"rows={PACKAGES / 'tensor_rows'}", "--grpc-port", "0") as server:
        assert failed(server, triton(), "triton.py") == {}
        rows = {"name": "x", "datatype": "FP32", "shape": [2, 1], "data": [1, 2]}
        answer = server.client.post("/v2/models/rows/infer", json={"inputs": [rows]}).json()
        assert answer["model_name"] == "rows"
        assert answer["outputs"][0]["data"] == [2, 4]


@large("kserve-0.21")
@pytest.mark.timeout(900)
def test_kserves_client(server: Server) -> None:
    assert failed(server, environments.python_with("kserve-0.21", "kserve==0.21.0"), "kserves.py") == {}


@large("mlserver-1.7")
@pytest.mark.timeout(900)
def test_mlservers_client(server: Server) -> None:
    assert failed(server, environments.python_with("mlserver-1.7", "mlserver==1.7.1"), "mlservers.py") == {}
