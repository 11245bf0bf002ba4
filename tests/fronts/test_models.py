"""Models that are loaded and unloaded in a server with several fronts: every front serves a model, or none does."""

from __future__ import annotations

import contextlib
import random
import shutil
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.descent import children
from support.models import all_of, write_model
from support.server import Server, serving, wait_until
from support.steady_clients import asked_meanwhile
from support.traffic import times

CONTROL = "of-whoever-runs-it"
ADMIN = {"authorization": f"Bearer {CONTROL}"}
FLAGS = ("--admin", "--fronts", "2", "--workers", "2", "--restart-delay", "0.1")
SLOW = """
import time

time.sleep({seconds})


def predict(x):
    return {{"model": "{says}", "got": x}}
"""
FAILS_ONCE = """
import os

# The first worker to come loads, all others fail: so the first front loads the model, and the second does not.
os.close(os.open({path!r}, os.O_CREAT | os.O_EXCL))


def predict(x):
    return {{"model": "wrong", "got": x}}
"""


@contextlib.contextmanager
def several(folder: Path, *flags: str) -> Iterator[Server]:
    words = (*FLAGS, *flags)
    with serving(all_of(folder), *words, env={"PANGLOT_ADMIN_TOKEN": CONTROL}) as server:
        yield server


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    write_model(tmp_path / "echo", says="old")
    with several(tmp_path) as running:
        assert len(running.fronts()) == 2
        yield running


def change(server: Server, name: str, what: str, timeout: float = 120) -> httpx.Response:
    return httpx.post(f"{server.url}/v2/repository/models/{name}/{what}", headers=ADMIN, timeout=timeout)


def said(server: Server, name: str, connections: int = 6) -> Counter[str]:
    """What the fronts answer for a model: new connections go round."""
    answers: Counter[str] = Counter()
    for number in range(connections):
        with server.new_client() as client:
            answer = client.post(f"/models/{name}/predict", json=number)
            answers[answer.json()["model"] if answer.status_code == 200 else str(answer.status_code)] += 1
    return answers


def states(server: Server, connections: int = 4) -> list[dict[str, tuple[str, str]]]:
    """The index of the models, as several connections see it."""
    answers = [httpx.post(f"{server.url}/v2/repository/index", headers=ADMIN).json() for _ in range(connections)]
    return [{row["name"]: (row["state"], row["reason"]) for row in rows} for rows in answers]


def lasting(server: Server, workers: int) -> None:
    wait_until(lambda: len(server.fronts()) == 2 and len(server.workers()) == workers, 60)


def test_a_model_is_loaded_and_unloaded_in_all_fronts(server: Server, tmp_path: Path) -> None:
    for number in range(2):
        assert said(server, "late") == {"404": 6}
        write_model(tmp_path / "late", says=f"late {number}")
        assert change(server, "late", "load").status_code == 200
        assert said(server, "late") == {f"late {number}": 6}
        assert len(server.workers()) == 4, "each model has its workers once, shared out"
        assert all(seen["late"] == ("READY", "") for seen in states(server))
        assert change(server, "late", "unload").status_code == 200
        assert said(server, "late") == {"404": 6}
        assert all(seen["late"] == ("UNAVAILABLE", "unloaded") for seen in states(server))
        lasting(server, 2)
    assert change(server, "nothing", "load").status_code == 400
    assert "there is no model 'nothing' to unload" in change(server, "nothing", "unload").json()["error"]


def test_a_model_is_replaced_under_load_and_calls_are_lent(server: Server, tmp_path: Path) -> None:
    with asked_meanwhile(server, "/models/echo/predict") as answers:
        for number in range(times(3, 30)):
            write_model(tmp_path / "echo", says=f"new {number}")
            assert change(server, "echo", "load").status_code == 200
            assert said(server, "echo") == {f"new {number}": 6}
    assert answers
    assert all(word == "old" or word.startswith("new ") for word in answers), answers
    lasting(server, 2)
    slow = "import time\n\n\ndef predict(x):\n    time.sleep(0.3)\n    return x\n"
    write_model(tmp_path / "echo", body=slow)
    assert change(server, "echo", "load").status_code == 200
    before = lent(server)
    # A client has one connection to one front: both workers work for it when the front lends.
    with httpx.Client(base_url=server.url, limits=httpx.Limits(max_connections=8), timeout=60) as client:
        threads = [threading.Thread(target=client.post, args=("/models/echo/predict",), kwargs={"json": 1})
                   for _ in range(8)]  # fmt: skip
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert lent(server) >= before


def lent(server: Server) -> float:
    return sum(server.metric("panglot_calls_lent_total", front=str(front)) for front in range(2))


def test_a_front_that_cannot_load_undoes_it_in_all(server: Server, tmp_path: Path) -> None:
    once = tmp_path.parent / f"{tmp_path.name}-once"
    write_model(tmp_path / "echo", body=FAILS_ONCE.format(path=str(once)))
    (tmp_path / "echo" / "panglot.toml").write_text("workers = 2\n")
    answer = change(server, "echo", "load")
    assert answer.status_code == 400
    assert "FileExistsError" in answer.json()["error"]
    assert once.exists(), "the first front did load it"
    assert said(server, "echo") == {"old": 6}
    lasting(server, 2)
    once.unlink()
    (tmp_path / "new").mkdir()
    shutil.copy(tmp_path / "echo" / "model.py", tmp_path / "new")
    assert change(server, "new", "load").status_code == 400
    assert said(server, "new") == {"404": 6}
    for seen in states(server):
        assert seen["new"][0] == "UNAVAILABLE"
        assert "FileExistsError" in seen["new"][1]
    lasting(server, 2)
    write_model(tmp_path / "new")
    assert change(server, "new", "load").status_code == 200
    assert said(server, "new") == {"new": 6}


def test_a_script_that_cannot_load_is_told_once(server: Server, tmp_path: Path) -> None:
    write_model(tmp_path / "broken", body="raise ValueError('no weights')\n\n\ndef predict(x): pass\n")
    mark = len(server.lines)
    assert "no weights" in change(server, "broken", "load").json()["error"]
    server.wait_log("broken is not loaded", after=mark)
    assert sum("broken is not loaded" in line for line in server.lines[mark:]) == 1
    assert said(server, "broken") == {"404": 6}


@pytest.mark.parametrize("victim", [0, 1])
def test_a_front_that_dies_while_a_model_is_loaded_comes_back_with_it(
    server: Server, tmp_path: Path, victim: int
) -> None:
    write_model(tmp_path / "slow", body=SLOW.format(seconds=1.5, says="slow"))
    results: list[Any] = []
    fronts = sorted(server.fronts(), key=lambda front: front.pid)

    def load() -> None:
        try:
            results.append(change(server, "slow", "load").status_code)
        except httpx.TransportError:
            # The front that was asked is the one that died.
            results.append("reset")

    thread = threading.Thread(target=load)
    thread.start()
    # The workers of the front that dies are loading the model: the first front's first.
    wait_until(lambda: len(children(fronts[victim])) > 1)
    fronts[victim].kill()
    thread.join()
    assert results[0] in (200, "reset")
    wait_until(lambda: states(server, 1)[0].get("slow", ("", ""))[0] == "READY", 60)
    lasting(server, 4)
    wait_until(lambda: said(server, "slow") == {"slow": 6}, 60)
    assert said(server, "echo") == {"old": 6}


def test_a_front_that_dies_comes_back_with_the_models_of_now(server: Server, tmp_path: Path) -> None:
    write_model(tmp_path / "late")
    assert change(server, "late", "load").status_code == 200
    write_model(tmp_path / "echo", says="new")
    assert change(server, "echo", "load").status_code == 200
    for front in server.fronts():
        pids = {front.pid for front in server.fronts()}
        front.kill()
        wait_until(lambda pids=pids: len({front.pid for front in server.fronts()} - pids) == 1, 60)
        wait_until(lambda: server.metric("panglot_workers", model="late", state="ready") == 2, 60)
    assert said(server, "echo") == {"new": 6}
    assert said(server, "late") == {"late": 6}
    assert change(server, "late", "unload").status_code == 200
    server.fronts()[1].kill()
    lasting(server, 2)
    wait_until(lambda: server.metric("panglot_workers", model="echo", state="ready") == 2, 60)
    assert said(server, "late") == {"404": 6}


def test_fronts_die_while_models_come_and_go(server: Server, tmp_path: Path) -> None:
    """Eight clients ask for the model that stays; one that comes and goes is there or not, as the last answer said."""
    answers: Counter[str] = Counter()
    over = threading.Event()

    def ask() -> None:
        client = server.new_client()
        while not over.is_set():
            try:
                answers[str(client.post("/models/echo/predict", json=1).status_code)] += 1
            except httpx.TransportError:
                answers["reset"] += 1
                client.close()
                client = server.new_client()
        client.close()

    source, turns = random.Random(31), times(4, 100)
    write_model(tmp_path / "late")
    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    try:
        for turn in range(turns):
            for what, expected in (("load", "late"), ("unload", "404")):
                # One death for each change: where they came faster than fronts start, no change would ever end.
                killer = threading.Timer(source.uniform(0, 0.6), server.fronts()[turn % 2].kill)
                killer.start()
                outcome = None
                while outcome is None:
                    with contextlib.suppress(httpx.TransportError):
                        outcome = change(server, "late", what)
                is_gone = "to unload" in outcome.text
                assert outcome.status_code == 200 or (what == "unload" and is_gone), outcome.text
                killer.join()
                wait_until(lambda: is_complete(server), 60)
                assert said(server, "late") == {expected: 6}
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert set(answers) <= {"200", "503", "reset"}, answers
    assert answers["reset"] <= 8 * 2 * turns, answers
    assert answers["200"] > 0.5 * answers.total(), answers
    lasting(server, 2)
    assert said(server, "echo") == {"old": 6}


def is_complete(server: Server) -> bool:
    """Whether both fronts have loaded and tell their figures."""
    with contextlib.suppress(httpx.TransportError):
        text = httpx.get(f"{server.url}/metrics", timeout=10).text
        both = 'panglot_fronts{state="answering"} 2' in text
        return both and 'panglot_workers{model="echo",version="1",state="ready"} 2' in text
    return False


def test_a_model_that_fails_at_the_start_is_left_out_in_all_fronts(tmp_path: Path) -> None:
    write_model(tmp_path / "echo")
    write_model(tmp_path / "broken", body="raise ValueError('no weights')\n\n\ndef predict(x): pass\n")
    with several(tmp_path, "--partial") as server:
        assert len(server.fronts()) == 2
        assert said(server, "echo") == {"echo": 6}
        assert said(server, "broken") == {"404": 6}
        assert all("no weights" in seen["broken"][1] for seen in states(server))
        write_model(tmp_path / "broken", says="mended")
        assert change(server, "broken", "load").status_code == 200
        assert said(server, "broken") == {"mended": 6}
