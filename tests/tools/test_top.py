"""`panglot top`: the figures of the status page in a terminal."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from panglot.tools.top import duration, line
from support.server import Server, panglot, serving, wait_until


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("documented_json", env={"PANGLOT_TOKEN": "secret"}) as server:
        server.client.headers["authorization"] = "Bearer secret"
        server.predict({"text": "a fox", "labels": ["fox"], "options": None}, headers={"x-request-id": "good-one"})
        server.predict({"text": "fail", "labels": [], "options": None}, headers={"x-request-id": "bad-one"})
        wait_until(lambda: server.client.get("/status.json").json()["failed"] == 1)
        yield server


def test_shows_the_figures_once(server: Server) -> None:
    done = panglot("top", server.url, "--once", env={"PANGLOT_TOKEN": "secret"})
    assert done.returncode == 0, done.stderr
    for words in (
        "documented_json",
        "● ready",
        "2 answered",
        "1 failed",
        "good-one",
        "500 Internal Server Error",
        "p99",
    ):
        assert words in done.stdout
    for worker in server.workers():
        assert str(worker.pid) in done.stdout


def test_shows_them_as_json(server: Server) -> None:
    done = panglot("top", server.url, "--json", env={"PANGLOT_TOKEN": "secret"})
    assert json.loads(done.stdout)["answered"] == 2


def test_says_what_is_wrong(server: Server) -> None:
    done = panglot("top", server.url)
    assert (done.returncode, "set PANGLOT_TOKEN" in done.stderr) == (3, True)
    done = panglot("top", "http://127.0.0.1:1")
    assert (done.returncode, "is the server running?" in done.stderr) == (3, True)


def test_bars_and_durations() -> None:
    assert line([0, 5, 10]) == "▁▅█"
    assert line([0, 0]) == "▁▁"
    assert line([]) == ""
    assert [duration(seconds) for seconds in (59.9, 200, 18_121, 1_051_200)] == [
        "59 s",
        "3 min 20 s",
        "5 h 2 min",
        "12 d 4 h",
    ]
