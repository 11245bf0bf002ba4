"""RunPod's own server and Panglot on the same packages and requests, the SDK installed in one and not in the other.

A case that differs names the row of docs/dialects/runpod.md that says why.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from support import originals
from support.originals import Original
from support.server import PACKAGES, Server, serving

pytestmark = [pytest.mark.rest("installs RunPod's SDK"), pytest.mark.timeout(900)]
SDK = "runpod==1.12.0"
CLIENT = Path(__file__).with_name("clients") / "sdk_client.py"
ADDED = ("delayTime", "executionTime", "workerId", "id")
"""What the hosted API has, and the SDK's server has not; ids are new each time."""
EMPTY = "an empty dict, a list of errors, a generator that fails, on the SDK's server"

OPS = {
    '{"input": {"op": "echo", "n": 1}}': "",
    '{"input": {"op": "text"}}': "",
    '{"input": {"op": "error"}}': "",
    '{"input": {"op": "empty_error"}}': "",
    '{"input": {"op": "output"}}': "",
    '{"input": {"op": "raise"}}': "`error_traceback` of a failed job",
    '{"input": {"op": "nothing"}}': EMPTY,
    '{"input": {"op": "errors"}}': EMPTY,
    '{"input": [1]}': "`input` on the SDK's server",
    "{}": "",
}


def sdk() -> str:
    return originals.interpreter("runpod", SDK)


@pytest.fixture(scope="module")
def original() -> Iterator[Original]:
    with theirs("runpod_ops", "handler.py") as running:
        yield running


def theirs(package: str, script: str) -> Any:
    command = [sdk(), script, "--rp_serve_api", "--rp_api_port", originals.PORT]
    return originals.running(command, PACKAGES / package, "/openapi.json")


@pytest.fixture(scope="module", params=["with the SDK", "without it"])
def own(request: pytest.FixtureRequest) -> Iterator[Server]:
    flags = ("--python", sdk()) if request.param == "with the SDK" else ()
    with serving("runpod_ops", "--workers", "1", *flags) as running:
        yield running


def shown(response: httpx.Response) -> tuple[int, Any]:
    """Status and body without what is new each time, or only the hosted API has."""
    try:
        body = response.json()
    except ValueError:
        return response.status_code, response.text
    return response.status_code, {name: value for name, value in body.items() if name not in ADDED}


def without_traceback(told: tuple[int, Any]) -> Any:
    error = json.loads(told[1]["error"])
    return told[0], told[1]["status"], {name: error[name] for name in error if name != "error_traceback"}


@pytest.mark.parametrize("body", OPS)
def test_runsync(original: Original, own: Server, body: str) -> None:
    headers = {"content-type": "application/json"}
    expected = shown(httpx.post(original.url + "/runsync", content=body, headers=headers, timeout=60))
    answered = shown(own.client.post("/runsync", content=body, headers=headers))
    if not OPS[body]:
        assert answered == expected
        return
    originals.differs("runpod", OPS[body])
    if "raise" in body:
        assert without_traceback(answered) == without_traceback(expected)
    else:
        assert (expected[0] in (500, 422), answered[0]) == (True, 200)


def test_jobs_of_a_generator() -> None:
    body = {"input": {"prompt": "a b c"}}
    with theirs("runpod_generator", "rp_handler.py") as original, serving("runpod_generator", "--workers", "1") as own:
        answers = []
        for client in (httpx.Client(base_url=original.url), own.client):
            answers.append([shown(client.post("/runsync", json=body))])
            job = client.post("/run", json=body).json()
            answers[-1] += [job["status"], shown(client.post(f"/stream/{job['id']}"))]
            job = client.post("/run", json=body).json()
            answers[-1] += [shown(client.post(f"/status/{job['id']}")), shown(client.post("/status/nothing"))]
        assert answers[0] == answers[1]


@pytest.mark.document("runpod.25")
def test_the_sdks_client_drives_all_its_calls_with_a_token() -> None:
    with (
        serving("runpod_ops", "--workers", "1", env={"PANGLOT_TOKEN": "rpa_secret"}) as ops,
        serving("runpod_generator", "--workers", "1", env={"PANGLOT_TOKEN": "rpa_secret"}) as words,
    ):
        command = [sdk(), str(CLIENT), f"{ops.url}/v2", f"{words.url}/v2", "rpa_secret"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert {name: text for name, text in said.items() if text != "passed"} == {}
    assert len(said) == 7
