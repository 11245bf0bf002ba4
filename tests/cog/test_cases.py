"""What Cog's own integration tests ask: inputs, outputs, files and failures, each a small case; see support.cog_cases.

The side-by-side tests ask the old server the same.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from support import cog_cases
from support.scripted import Scripted, redirect, scripted, simple
from support.server import Server, serving, wait_until

MOST = 100_000
LONG = "n" * 300
ANSWERS = {
    "/a.txt": simple(b"hi"),
    "/b%20c.tar.gz?signed=1": simple(b"hi"),
    "/d%2Fe.txt": simple(b"hi"),
    f"/{LONG}.txt": simple(b"hi"),
    "/no-extension": simple(b"hi"),
    "/elsewhere": redirect("/a.txt"),
    "/large": simple(b"x" * (MOST + 1)),
    "/short": simple(b"abc").replace(b"ength: 3", b"ength: 9"),
}


@pytest.fixture(scope="module")
def other() -> Iterator[Scripted]:
    with scripted(dict(ANSWERS)) as running:
        yield running


@pytest.fixture(scope="module")
def server(other: Scripted) -> Iterator[Server]:
    flags = ("--workers", "1", "--url-allow", other.host, "--fetch-bytes", str(MOST), "--fetch-urls", "2")
    with serving("cog_cases", *flags) as running:
        yield running


def posted(server: Server, given: dict[str, Any], **more: Any) -> httpx.Response:
    return server.client.post("/predictions", json={"input": given, **more}, timeout=60)


def output(server: Server, **given: Any) -> Any:
    answer = posted(server, given)
    assert (answer.status_code, answer.json()["status"]) == (200, "succeeded"), answer.text
    return answer.json()["output"]


@pytest.mark.document("cog.04", "cog.05", "cog.07", "cog.30")
@pytest.mark.parametrize("name", cog_cases.GOOD)
def test_inputs_reach_the_script_and_its_output_the_client(server: Server, name: str) -> None:
    expected = cog_cases.GOOD[name]
    given = output(server, **expected.given)
    assert given == expected.output
    assert list(map(type, given)) == list(map(type, expected.output)) if isinstance(given, list) else True


@pytest.mark.document("cog.10", "cog.30")
@pytest.mark.parametrize("name", cog_cases.FAILED)
def test_an_exception_is_a_failed_prediction_with_its_message(server: Server, name: str) -> None:
    case, given, error = cog_cases.FAILED[name]
    answer = posted(server, {"case": case, **given})
    told = answer.json()
    assert (answer.status_code, told["status"], told["error"], told["output"]) == (200, "failed", error, None)
    assert told["logs"] == ("before it failed\n" if case == "prints_and_fails" else "")


@pytest.mark.document("cog.10", "cog.30")
@pytest.mark.parametrize(
    ("case", "error"), [("gone", "gone.txt cannot be read: No such file"), ("closed", "I/O operation on closed file")]
)
def test_a_file_that_cannot_be_read_fails_the_prediction(server: Server, case: str, error: str) -> None:
    line = len(server.lines)
    told = posted(server, {"case": case}).json()
    assert (told["status"], error in told["error"]) == ("failed", True), told
    server.wait_log(rf"cases.py:\d+: predict: the file .*{re.escape(error)}", after=line)


@pytest.mark.document("cog.05", "cog.11", "cog.30")
@pytest.mark.parametrize("name", cog_cases.REFUSED)
def test_inputs_of_another_type_are_refused(server: Server, name: str) -> None:
    expected = cog_cases.REFUSED[name]
    answer = posted(server, expected.given if name == "nothing" else {"case": "inputs", **expected.given})
    (problem,) = answer.json()["detail"]
    assert (answer.status_code, problem["loc"]) == (422, ["body", "input", expected.field])
    assert expected.message in problem["msg"]
    assert problem["type"] == (expected.type or problem["type"])


def test_all_wrong_inputs_are_named_at_once(server: Server) -> None:
    details = posted(server, {"whole": "x", "flag": []}).json()["detail"]
    assert [problem["loc"][2] for problem in details] == ["case", "whole", "flag"]


# Files at addresses

NAMED = {
    "/a.txt": ("a.txt", ".txt"),
    "/b%20c.tar.gz?signed=1": ("c.tar.gz", ".gz"),
    "/d%2Fe.txt": ("_e.txt", ".txt"),
    "/elsewhere": ("lsewhere", ""),
    "/no-extension": ("xtension", ""),
}


@pytest.mark.document("cog.05", "cog.30")
@pytest.mark.parametrize("path", NAMED)
def test_a_file_at_an_address_is_there_while_the_prediction_runs(server: Server, other: Scripted, path: str) -> None:
    ending, extension = NAMED[path]
    name, suffix, content, is_path, is_absolute = output(server, case="named", path=other.url(path))
    assert (name.endswith(ending[-8:]), suffix, content, is_path, is_absolute) == (True, extension, "hi", True, True)
    assert output(server, case="is_there") is False, "the file is removed after the prediction"
    assert output(server, case="opened", file=other.url(path)) == "hi"


@pytest.mark.document("cog.05")
def test_a_long_name_is_cut_and_keeps_its_extension(server: Server, other: Scripted) -> None:
    assert output(server, case="length", path=other.url(f"/{LONG}.txt")) == [True, ".txt", 2]


@pytest.mark.document("cog.05", "cog.30")
@pytest.mark.parametrize("path", ["/gone", "/large", "/short"])
def test_a_file_that_cannot_be_fetched_refuses_the_inputs(server: Server, other: Scripted, path: str) -> None:
    for given in ({"path": other.url(path)}, {"path": other.url("/a.txt"), "file": other.url(path)}):
        answer = posted(server, {"case": "inputs", **given})
        (problem,) = answer.json()["detail"]
        assert (answer.status_code, problem["loc"][2]) == (422, list(given)[-1])
        assert "cannot be fetched" in problem["msg"]


# The whole prediction


@pytest.mark.document("cog.09", "cog.30")
def test_what_a_client_sends_besides_its_inputs_is_in_the_answer(server: Server) -> None:
    more = {"id": "own-1", "created_at": "2026-01-02T03:04:05Z", "foo": {"a": [1]}, "output_file_prefix": None}
    told = posted(server, {"case": "nothing", "dropped": 1}, **more).json()
    assert (told["id"], told["foo"], "dropped" in told["input"]) == ("own-1", {"a": [1]}, False)
    assert told["started_at"] <= told["completed_at"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+\+00:00", told["started_at"])
    unnamed = posted(server, {"case": "nothing"}, created_at=more["created_at"]).json()
    assert (unnamed["id"], unnamed["created_at"], unnamed["version"]) == (None, more["created_at"], None)


@pytest.mark.document("cog.13", "cog.30")
def test_a_put_while_its_prediction_runs_is_the_same_prediction(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with serving("cog_health", "--workers", "1") as server:
        answers: list[dict[str, Any]] = []

        def put() -> None:
            answers.append(server.new_client().put("/predictions/one", json={"input": {"gate": str(gate)}}).json())

        threads = [threading.Thread(target=put) for _ in range(2)]
        for thread in threads:
            thread.start()
        wait_until(lambda: server.client.get("/health-check").json()["status"] == "BUSY")
        gate.touch()
        for thread in threads:
            thread.join()
        assert answers[0] == answers[1]
        assert answers[0]["logs"] == "healthy from now on: True\n", "it was made once"


@pytest.mark.document("cog.16", "cog.30")
def test_the_first_page_lists_the_paths_of_the_server(server: Server) -> None:
    assert list(server.client.get("/").json()) == [
        "cog_version", "docs_url", "healthcheck_url", "openapi_url", "predictions_cancel_url",
        "predictions_idempotent_url", "predictions_url",
    ]  # fmt: skip
    for path, status in (("/nowhere", 404), ("/predictions", 405), ("/predictions/one", 405), ("/shutdown", 404)):
        assert server.client.get(path).status_code == status
    assert server.client.post("/shutdown").status_code == 404
