"""Clients of other servers ask this one, each in an environment of its own."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import environments
from support.rpc import address
from support.server import Server, serving
from support.traffic import SOAK

CLIENTS = Path(__file__).with_name("clients")
soak = pytest.mark.skipif(not SOAK, reason="downloads an environment of half a gigabyte: make soak")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("tensors", "--grpc-port", "0") as running:
        yield running


def checked(server: Server, python: str, script: str) -> dict[str, str]:
    """What came of every check of a client."""
    where = (server.url.partition("://")[2], address(server))
    done = subprocess.run(
        [python, str(CLIENTS / script), *where], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.timeout(600)
def test_nvidias_client_in_every_mode(server: Server) -> None:
    """It wants an older protobuf than frameworks do."""
    python = environments.python_with("tritonclient-2.73", "tritonclient[http,grpc]==2.73.0")
    found = checked(server, python, "triton.py")
    assert len(found) >= 18
    assert {name: text for name, text in found.items() if text != "passed"} == {}


@soak
@pytest.mark.timeout(900)
def test_kserves_client(server: Server) -> None:
    found = checked(server, environments.python_with("kserve-0.21", "kserve==0.21.0"), "kserves.py")
    assert {name: text for name, text in found.items() if text != "passed"} == {}


@soak
@pytest.mark.timeout(900)
def test_mlservers_client(server: Server) -> None:
    found = checked(server, environments.python_with("mlserver-1.7", "mlserver==1.7.1"), "mlservers.py")
    assert {name: text for name, text in found.items() if text != "passed"} == {}
