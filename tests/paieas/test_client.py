"""The token of PAI-EAS: as it is, or as the key of a signature; and the platform's own client, which signs."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import subprocess
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path

import pytest

from support import originals
from support.server import Server, serving

SCRIPT = Path(__file__).with_name("clients") / "predict_client.py"
TOKEN = "YmVmZjkyOTY4NjY3"
PATH = "/api/predict/sum"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("paieas_sum", env={"PANGLOT_TOKEN": TOKEN}) as running:
        yield running


def signed(body: bytes, token: str = TOKEN, path: str = PATH, date: str = "", method: str = "POST") -> dict[str, str]:
    """The headers of the platform's client."""
    md5, kind, date = hashlib.md5(body).hexdigest(), "application/octet-stream", date or formatdate(usegmt=True)
    text = "\n".join((method, md5, kind, date, path))
    signature = base64.b64encode(hmac.new(token.encode(), text.encode(), hashlib.sha1).digest()).decode()
    return {"Content-MD5": md5, "Content-Type": kind, "Date": date, "Authorization": f"EAS {signature}"}


def status(server: Server, headers: dict[str, str], body: bytes = b"2 104", path: str = PATH) -> int:
    return server.client.post(path, content=body, headers=headers).status_code


@pytest.mark.document("paieas.24")
def test_the_token_opens_as_it_is_and_as_a_bearer(server: Server) -> None:
    assert status(server, {"Authorization": TOKEN}) == 200
    assert status(server, {"Authorization": f"Bearer {TOKEN}"}) == 200
    assert status(server, {"Authorization": "wrong"}) == 401
    assert status(server, {}) == 401


@pytest.mark.document("paieas.25")
def test_a_signature_opens_what_it_was_made_for_and_nothing_else(server: Server) -> None:
    right = signed(b"2 104")
    assert status(server, right) == 200
    assert status(server, right, body=b"2 999") == 400
    assert status(server, right, path="/api/predict/other") == 401
    assert status(server, {**right, "Date": formatdate(1, usegmt=True)}) == 401
    assert status(server, signed(b"2 104", date=formatdate(1, usegmt=True))) == 401
    assert status(server, signed(b"2 104", token="wrong")) == 401
    assert status(server, {**right, "Authorization": "EAS"}) == 401
    without_md5 = {name: text for name, text in right.items() if name != "Content-MD5"}
    assert status(server, without_md5) == 401


@pytest.mark.document("paieas.26")
@pytest.mark.rest("installs eas-prediction")
@pytest.mark.timeout(900)
def test_the_platforms_client_finds_everything_as_on_the_platform(server: Server) -> None:
    packages = ("protobuf==3.20.3", "numpy", "urllib3", "websocket-client", "python-snappy", "eas-prediction==0.36")
    python = originals.interpreter("eas-prediction", *packages)
    command = [python, str(SCRIPT), server.url.partition("://")[2], TOKEN]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert {name: text for name, text in said.items() if text != "passed"} == {}
    assert len(said) == 5
