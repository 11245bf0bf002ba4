"""Clients of other servers ask this one, each in an environment of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import environments
from support.rpc import address
from support.server import PACKAGES, ROOT, Server, serving

CLIENTS = Path(__file__).with_name("clients")


KSERVE_AND_MLSERVER = (
    "kserve==0.21.0", "cloudevents==1.13.0", "deprecation==2.1.0", "durationpy==0.11", "fastapi==0.162.4",
    "grpc-interceptor==0.15.4", "grpcio-tools==1.81.1", "kubernetes==37.0.1", "oauthlib==4.0.1", "pandas==2.3.3",
    "prometheus-client==0.26.0", "protobuf==6.33.6", "python-multipart==0.0.33", "pytz==2026.6",
    "requests-oauthlib==2.0.0", "tabulate==0.10.0", "timing-asgi==0.3.2", "websocket-client==1.9.2",
    "mlserver==1.7.1", "aiofiles==25.1.0", "aiokafka==0.14.0", "asgiref==3.13.0", "async-timeout==5.0.1",
    "opentelemetry-exporter-otlp-proto-grpc==1.45.1", "opentelemetry-instrumentation==0.66b1",
    "opentelemetry-instrumentation-asgi==0.66b1", "opentelemetry-instrumentation-fastapi==0.66b1",
    "opentelemetry-instrumentation-grpc==0.66b1", "opentelemetry-util-http==0.66b1", "py-grpc-prometheus==0.8.0",
    "starlette-exporter==0.24.0",
)  # fmt: skip
"""What their clients import and our environment lacks. A resolver takes minutes over all that their servers want."""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("tensors", "--grpc-port", "0") as running:
        yield running


def failed(
    server: Server, python: str, script: str, *arguments: str, env: dict[str, str] | None = None
) -> dict[str, str]:
    """The checks of a client that fail, with what they say. There is at least one check."""
    where = (server.url.partition("://")[2], address(server))
    command = [python, str(CLIENTS / script), *where, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=env)
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


def kserve_and_mlserver() -> dict[str, str]:
    return environments.over_ours("kserve-0.21-and-mlserver-1.7", *KSERVE_AND_MLSERVER)


EXAMPLES = {
    "tiinfer": ("tiinfer", "input", "request.json"),
    "modelarts": ("modelarts/model", "images", "seven.png"),
    "evals": ("evals", "input", "seven.png"),
    "paddle": ("paddle", "input", "images/demo.png"),
    "graph": ("megflow/digits", "input", "seven.png"),
    "digits": ("digits", "input", "seven.png"),
    "file": ("digits/digits.onnx", "features", ""),
    "triton": ("triton", "PICTURE", "seven.png"),
}
"""Where the example of each dialect lies, and the tensor and the file it is asked with."""


@pytest.fixture(scope="module")
def everything() -> Iterator[Server]:
    """One server for an example of every dialect, a model file, and a script that gives tensors back."""
    folder = ROOT / "examples"
    others = [f"{name}={folder / place}" for name, (place, _, _) in EXAMPLES.items() if name != "tiinfer"]
    others.append(str(PACKAGES / "tensors"))
    with serving(folder / "tiinfer", *others, "--grpc-port", "0", ready=False) as running:
        running.wait_ready(180)
        yield running


@pytest.fixture(scope="module")
def plan() -> str:
    folder = ROOT / "examples"
    asked = [(name, tensor, file and str(folder / place / file)) for name, (place, tensor, file) in EXAMPLES.items()]
    return json.dumps(asked)


@pytest.mark.timeout(600)
def test_nvidias_client_asks_an_example_of_every_dialect(everything: Server, plan: str) -> None:
    """One that knows no tensors gets its native body as one element of BYTES."""
    assert failed(everything, triton(), "native.py", plan) == {}, everything.log


@pytest.mark.timeout(600)
@pytest.mark.parametrize("script", ["kserves.py", "mlservers.py"])
def test_clients_of_kserve_and_mlserver(everything: Server, plan: str, script: str) -> None:
    """In all their modes, and each example as above."""
    assert failed(everything, sys.executable, script, plan, env=kserve_and_mlserver()) == {}, everything.log


@pytest.mark.parametrize("model", EXAMPLES)
def test_wrong_tensors_are_told_in_a_sentence_by_every_dialect(everything: Server, model: str) -> None:
    wrong = {"name": "x", "datatype": "INT8", "shape": [1], "data": [1.5]}
    bad = everything.client.post(f"/v2/models/{model}/infer", json={"inputs": [wrong]})
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
