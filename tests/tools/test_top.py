"""`panglot top`: the figures of the status page in a terminal."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from panglot.tools import top
from panglot.tools.top import GOOD, duration, line, screen
from support.server import Server, panglot, serving, wait_until
from support.terminal import in_terminal
from support.two_fronts import FRONTS


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
        "the script failed on this request",
        "p99",
    ):
        assert words in done.stdout
    for worker in server.workers():
        assert str(worker.pid) in done.stdout


def test_shows_them_as_json(server: Server) -> None:
    done = panglot("top", server.url, "--json", env={"PANGLOT_TOKEN": "secret"})
    assert json.loads(done.stdout)["answered"] == 2


def test_fits_the_terminal_while_it_follows(server: Server) -> None:
    """The last lines give way, and no line is broken."""
    rows = 24 + (int(FRONTS) + 2 if FRONTS else 0)  # the fronts have a table of their own
    shown = in_terminal(
        ["panglot", "top", server.url], 80, rows=rows, until="requests/s", env={"PANGLOT_TOKEN": "secret"}
    ).screen.rstrip()
    assert len(shown.splitlines()) <= rows
    assert max(map(len, shown.splitlines())) <= 80
    for words in ("● ready", "5xx/s", "the script failed on this request", "bad-one"):
        assert words in shown


def test_a_narrow_terminal_has_the_newest_second() -> None:
    """A minute of bars does not fit into 80 columns beside the figures: its beginning is left out."""
    history = [[float(second), *([0.0] * 11)] for second in range(60)]
    history[-1][GOOD] = 9.0
    figures = {
        "about": {"models": [{"name": "m"}]}, "state": "ready", "restarts": {}, "uptime": 1, "answered": 1, "failed": 0,
        "history": history, "workers": [], "batches": [], "errors": [], "recent": [],
    }  # fmt: skip
    console = Console(width=80, file=io.StringIO())
    console.print(screen(figures, "http://127.0.0.1:8080", 80, keys=True))
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "q quits" in shown
    rates = next(row for row in shown.splitlines() if row.startswith("requests/s"))
    assert rates.rstrip().endswith("█")
    assert len(rates) <= 80


def test_with_several_fronts_fewer_requests_are_shown() -> None:
    request = {"id": "a", "when": 0, "route": "/predict", "status": 200, "total": 1.0, "stages": {}}
    front = {"pid": 1, "busy": 0.0, "memory": 0, "connections": 0, "requests": 0, "lent": 0, "borrowed": 0}
    figures = {
        "about": {"models": [{"name": "m"}]}, "state": "ready", "restarts": {}, "uptime": 1, "answered": 1, "failed": 0,
        "history": [], "workers": [], "batches": [], "errors": [], "recent": [request] * 12,
    }  # fmt: skip
    several = {**figures, "fronts": [{"front": index, **front} for index in range(3)]}
    for told, requests in ((figures, 6), (several, 1)):
        console = Console(width=80, file=io.StringIO())
        console.print(screen(told, "http://127.0.0.1:8080", 80, 24))
        shown = console.file.getvalue()  # type: ignore[attr-defined]
        assert (len(shown.splitlines()), shown.count("/predict")) == (24, requests)


def test_q_ends_it(server: Server) -> None:
    done = in_terminal(
        ["panglot", "top", server.url], 80, until="q quits", env={"PANGLOT_TOKEN": "secret"}, keys="q", seconds=60
    )
    assert done.code == 0


SMI = """#!/bin/sh
for process in $(pgrep python); do echo "$process, 1234"; done
"""


def test_the_memory_of_gpus(tmp_path: Path) -> None:
    """As nvidia-smi tells it, here by a program of its name: there is no GPU where tests run."""
    (tmp_path / "nvidia-smi").write_text(SMI)
    (tmp_path / "nvidia-smi").chmod(0o755)
    with serving("documented_json", env={"PATH": f"{tmp_path}:{os.environ['PATH']}"}) as server:
        shown = panglot("top", server.url, "--once").stdout
        told = json.loads(panglot("top", server.url, "--json").stdout)
    assert "GPU" in shown
    assert "1.29 GB" in shown
    assert [worker["gpu"] for worker in told["workers"]] == [1234 << 20]


def test_what_matters_least_gives_way() -> None:
    """A worker's age and number go before what it does, and what follows a name is cut."""
    worker = {
        "model": "digits", "pool": "preprocess", "index": 3, "state": "ready", "pid": 4_123_456, "served": 123_456_789,
        "in_flight": 12, "cpu": 0.98, "memory": 12e9, "gpu": 80e9, "seconds": 90_000,
    }  # fmt: skip
    told = {"about": {"models": [{"name": "digits"}, {"name": "other"}]}, "workers": [worker]}
    assert [column.header for column in top._workers(told, 80).columns] == [
        "worker", "state", "pid", "served", "CPU", "memory", "GPU",
    ]  # fmt: skip


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
