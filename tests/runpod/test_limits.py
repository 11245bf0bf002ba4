"""How long results are stored, what ids look like, and how large requests and parts of a stream may be."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from support.server import Server, serving, wait_until

HOSTED = "/v2/any-endpoint"
ID = "[0-9a-z]{26}-u1"
MB = 1_000_000


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("runpod_ops", "--workers", "1", "--max-body", str(12 * MB)) as running:
        yield running


def asked(server: Server, path: str, value: Any) -> dict[str, Any]:
    answer = server.client.post(f"{HOSTED}{path}", json={"input": value}, timeout=60)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def ended(server: Server, job: str) -> dict[str, Any]:
    def told() -> dict[str, Any]:
        return dict(server.client.get(f"{HOSTED}/status/{job}").json())

    wait_until(lambda: told()["status"] == "COMPLETED")
    return told()


def stored_for(server: Server, job: str) -> float:
    """The seconds from the end of a job to its removal, as the server tells them."""
    bare = job.removeprefix("sync-").removesuffix("-u1")
    told = server.client.get(f"/jobs/{bare}").json()
    return (datetime.fromisoformat(told["expires"]) - datetime.fromisoformat(told["ended"])).total_seconds()


@pytest.mark.document("runpod.31", "runpod.32")
def test_a_result_of_run_is_stored_for_half_an_hour_and_one_of_runsync_for_a_minute(server: Server) -> None:
    job = asked(server, "/run", {"op": "text"})["id"]
    ended(server, job)
    assert (bool(re.fullmatch(ID, job)), stored_for(server, job)) == (True, pytest.approx(1800, abs=0.01))
    # Only a call that outlasts its wait is stored.
    sync = asked(server, "/runsync?wait=1000", {"op": "sleep", "seconds": 3})["id"]
    ended(server, sync)
    assert (bool(re.fullmatch(f"sync-{ID}", sync)), stored_for(server, sync)) == (True, pytest.approx(60, abs=0.01))


@pytest.mark.document("runpod.32")
def test_the_id_of_a_call_that_was_answered_begins_in_the_same_way(server: Server) -> None:
    answer = asked(server, "/runsync", {"op": "keys"})
    assert re.fullmatch(f"sync-{ID}", answer["id"])
    assert answer["output"]["job"]["id"] == answer["id"]


@pytest.mark.document("runpod.33")
@pytest.mark.parametrize("path", ["/run", "/runsync"])
def test_a_request_may_be_as_large_as_the_setting_says(server: Server, path: str) -> None:
    """The platform takes 10 MB at /run, and 20 MB at /runsync."""
    told = asked(server, path, {"op": "text", "data": "x" * 11 * MB})
    assert ended(server, told["id"])["output"] == "x" if path == "/run" else told["output"] == "x"
    refused = server.client.post(f"{HOSTED}{path}", json={"input": "x" * 13 * MB}, timeout=60)
    assert (refused.status_code, list(refused.json())) == (413, ["error"])


@pytest.mark.document("runpod.33")
def test_a_part_of_a_stream_may_be_larger_than_on_the_platform() -> None:
    """Where a part has 1 MB at most."""
    long = "x" * 3 * MB
    with serving("runpod_generator", "--workers", "1") as server:
        job = asked(server, "/run", {"prompt": f"a {long}"})["id"]
        parts: list[Any] = []

        def has_all() -> bool:
            parts.extend(server.client.get(f"{HOSTED}/stream/{job}").json()["stream"])
            return len(parts) >= 2

        wait_until(has_all)
        assert [part["output"]["word"] for part in parts] == ["a", long]


GENERATOR = """import runpod


def handler(job):
    yield "a"
    yield "b"


runpod.serverless.start({"handler": handler%s})
"""


@pytest.mark.document("runpod.34")
@pytest.mark.parametrize("given", ["", ', "return_aggregate_stream": True', ', "return_aggregate_stream": False'])
def test_the_output_of_a_generator_is_the_list_of_its_yields(given: str, tmp_path: Path) -> None:
    (tmp_path / "handler.py").write_text(GENERATOR % given)
    with serving(tmp_path, "--workers", "1") as server:
        assert asked(server, "/runsync", {})["output"] == ["a", "b"]
        assert ended(server, asked(server, "/run", {})["id"])["output"] == ["a", "b"]
