"""Where calls are short, a busy worker has its next call already: nobody waits behind a long one, and none is lost."""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest

from support.server import Server, serving, wait_until
from support.traffic import Answer, Caller, Gate, answers, burst, stopped, times
from support.wire import Wire

FLAGS = ("--restart-delay", "0.05", "--restart-delay-max", "0.1", "--poison-deaths", "0")
ATTEMPTS = 40
"""A machine that has no time makes a short call a long one, behind which nothing is sent."""


def started(*flags: str, workers: int) -> contextlib.AbstractContextManager[Server]:
    return serving("short_calls", *FLAGS, "--workers", str(workers), *flags)


@pytest.fixture(scope="module")
def one() -> Iterator[Server]:
    with started(workers=1) as server:
        yield server


@pytest.fixture(scope="module")
def two() -> Iterator[Server]:
    with started(workers=2) as server:
        wait_until(lambda: server.metric("panglot_workers", state="ready") == 2)
        yield server


class Notes:
    """What the script has noted: which calls it was given."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def item(self, id: int, **more: object) -> dict[str, Any]:
        return {"id": id, "notes": str(self.path), **more}

    def runs(self) -> Counter[int]:
        """How often the script was given each call."""
        return Counter(map(int, self.path.read_text().split())) if self.path.exists() else Counter()


def calls_by_worker(server: Server) -> dict[int, int]:
    """How many calls each worker has, by process."""
    return {worker["pid"]: worker["in_flight"] for worker in server.client.get("/status.json").json()["workers"]}


def warm_up(server: Server, workers: int) -> None:
    """Let every worker learn that calls are short."""
    wait_until(lambda: server.metric("panglot_workers", state="ready") == workers)
    with ThreadPoolExecutor(workers) as threads:
        for _ in range(20 * workers):
            threads.submit(server.predict, {"id": 0})


def test_a_busy_worker_has_its_next_call(one: Server, tmp_path: Path) -> None:
    for _, _, sent in behind_a_gate(one, tmp_path):
        assert [answer.status for answer in answers(one, sent)] == [200, 200]
        return


def behind_a_gate(
    server: Server, folder: Path, opens: bool = True
) -> Iterator[tuple[Notes, Gate, list[Future[Answer]]]]:
    """Calls 1 and 2 at the only worker of a server, which runs 1 until the gate is open and has 2 already."""
    for attempt in range(ATTEMPTS):
        warm_up(server, 1)
        notes, gate = Notes(folder / f"notes{attempt}"), Gate(folder / f"gate{attempt}")
        sent = burst(server, [notes.item(1, gate=str(gate)), notes.item(2)])
        wait_until(lambda notes=notes: notes.runs()[1] == 1)
        if list(calls_by_worker(server).values()) == [2]:
            if opens:
                gate.open()
            yield notes, gate, sent
            return
        gate.open()
        answers(server, sent)
    pytest.fail("no call was sent before the last was answered")


def test_a_call_behind_a_dead_worker_is_answered(one: Server, tmp_path: Path) -> None:
    before = one.metric("panglot_reruns_total", reason="worker_died")
    for notes, gate, sent in behind_a_gate(one, tmp_path, opens=False):
        os.kill(one.workers()[0].pid, signal.SIGKILL)
        # Only the call that ran is suspect: it runs once more, alone.
        wait_until(lambda notes=notes: notes.runs()[1] == 2)
        gate.open()
        assert [answer.status for answer in answers(one, sent)] == [200, 200]
        assert notes.runs() == {1: 2, 2: 1}
    assert one.metric("panglot_reruns_total", reason="worker_died") == before + 1


def test_without_rerun_a_call_behind_a_dead_worker_runs_once(tmp_path: Path) -> None:
    with started("--no-rerun", workers=1) as server:
        for notes, _, sent in behind_a_gate(server, tmp_path, opens=False):
            os.kill(server.workers()[0].pid, signal.SIGKILL)
            assert [answer.status for answer in answers(server, sent)] == [500, 200]
            assert notes.runs() == {1: 1, 2: 1}


def test_without_ahead_a_busy_worker_has_one_call(tmp_path: Path) -> None:
    with started("--no-ahead", workers=1) as server:
        warm_up(server, 1)
        notes, gate = Notes(tmp_path / "notes"), Gate(tmp_path / "gate")
        sent = burst(server, [notes.item(1, gate=str(gate)), notes.item(2)])
        wait_until(lambda: notes.runs()[1] == 1)
        assert list(calls_by_worker(server).values()) == [1]
        gate.open()
        assert [answer.status for answer in answers(server, sent)] == [200, 200]


@pytest.mark.parametrize("leave", ["the client disconnects", "its time is over"])
def test_a_call_that_nobody_waits_for_is_not_run(one: Server, tmp_path: Path, leave: str) -> None:
    for attempt in range(ATTEMPTS):
        warm_up(one, 1)
        notes, gate = Notes(tmp_path / f"notes{attempt}"), Gate(tmp_path / f"gate{attempt}")
        with Caller(one) as plug, Caller(one) as other, Wire(one) as leaving:
            for caller in (plug, other):
                caller.connection.connect()
            assert one.client.get("/v2/health/live").status_code == 200
            with stopped(one):
                plug.ask(notes.item(1, gate=str(gate)))
                timeout = b"X-Timeout-Ms: 1500\r\n" if leave == "its time is over" else b""
                body = b'{"id": 2, "notes": "%b"}' % str(notes.path).encode()
                leaving.send(
                    b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n%b"
                    b"Content-Length: %d\r\n\r\n%b" % (timeout, len(body), body)
                )
            wait_until(lambda notes=notes: notes.runs()[1] == 1)
            if notes.runs()[2]:
                # The server read the connections in the other order: nobody waited for anybody.
                gate.open()
                assert plug.answer().status == 200
                continue
            had_it = list(calls_by_worker(one).values()) == [2]
            if timeout:
                assert leaving.reply().status == 504
            leaving.close()
            wait_until(lambda: one.metric("panglot_requests_in_progress") <= 1)
            gate.open()
            assert plug.answer().status == 200
            assert other.post(notes.item(3)).status == 200
        assert notes.runs() == {1: 1, 3: 1}
        if had_it:
            return
    pytest.fail("no call was sent before the last was answered")


def test_a_call_behind_a_long_one_is_taken_back_and_runs_once(two: Server, tmp_path: Path) -> None:
    for attempt in range(ATTEMPTS):
        warm_up(two, 2)
        notes, gate = Notes(tmp_path / f"notes{attempt}"), Gate(tmp_path / f"gate{attempt}")
        sent = burst(two, [notes.item(1, gate=str(gate)), *(notes.item(id) for id in (2, 3, 4))])
        had = calls_by_worker(two)
        others = answers(two, sent[1:])
        assert not sent[0].done()
        gate.open()
        busy = answers(two, sent[:1])[0].json()["pid"]
        assert [answer.status for answer in others] == [200] * 3
        assert all(answer.json()["pid"] != busy for answer in others)
        # The worker that was busy has read by now that the call was taken back.
        wait_until(lambda: set(calls_by_worker(two).values()) == {0})
        assert notes.runs() == {1: 1, 2: 1, 3: 1, 4: 1}
        if had.get(busy) == 2:
            return
    pytest.fail("no call was sent before the last was answered")


def test_without_rerun_nothing_waits_behind_a_long_call(tmp_path: Path) -> None:
    """What is taken back may have begun, and must not run twice then: so it is not sent at all."""
    with started("--no-rerun", workers=2) as server:
        warm_up(server, 2)
        notes, gate = Notes(tmp_path / "notes"), Gate(tmp_path / "gate")
        sent = burst(server, [notes.item(1, gate=str(gate)), *(notes.item(id) for id in range(2, 12))])
        assert {answer.status for answer in answers(server, sent[1:])} == {200}
        assert not sent[0].done()
        gate.open()
        assert answers(server, sent[:1])[0].status == 200
        assert notes.runs() == dict.fromkeys(range(1, 12), 1)


def test_a_long_call_in_a_thousand_holds_up_no_other(tmp_path: Path) -> None:
    """The long calls end when all others have been answered."""
    notes, gate = Notes(tmp_path / "notes"), Gate(tmp_path / "gate")
    clients, each = 16, 188
    held: list[Answer] = []

    def ask(number: int) -> int:
        with Caller(server) as caller, Caller(server) as patient:
            plugs = 0
            for id in range(number * each, (number + 1) * each):
                if id % 1000 == 500:
                    patient.ask(notes.item(id, gate=str(gate)))
                    plugs += 1
                else:
                    assert caller.post(notes.item(id)).status == 200
            barrier.wait(60)
            gate.open()
            held.extend(patient.answer() for _ in range(plugs))
        return plugs

    with started(workers=4) as server:
        barrier = threading.Barrier(clients)
        warm_up(server, 4)
        with ThreadPoolExecutor(clients) as threads:
            assert sum(threads.map(ask, range(clients))) == 3
        assert [answer.status for answer in held] == [200] * 3
        runs = notes.runs()
        assert set(runs) == set(range(clients * each))
        assert max(runs.values()) <= 2


def test_a_front_that_stood_still_takes_back_no_call_that_has_its_answer(two: Server, tmp_path: Path) -> None:
    """When it goes on, its timers are late and the answers of its workers lie unread."""
    notes, stop = Notes(tmp_path / "notes"), threading.Event()
    with ThreadPoolExecutor(16) as threads:
        asking = [threads.submit(ask_on, two, notes, number, stop) for number in range(16)]
        for _ in range(5):
            time.sleep(0.2)
            with stopped(two):
                time.sleep(0.3)
        stop.set()
        statuses = {id: status for asked in asking for id, status in asked.result().items()}
    assert set(statuses.values()) == {200}
    assert notes.runs() == dict.fromkeys(statuses, 1)


@pytest.mark.parametrize("rerun", [True, False])
def test_no_call_is_lost_or_doubled_while_workers_are_killed(tmp_path: Path, rerun: bool) -> None:
    notes = Notes(tmp_path / "notes")
    clients, stop = 16, threading.Event()
    flags = () if rerun else ("--no-rerun",)
    with started("--restart-delay", "0", *flags, workers=3) as server:
        warm_up(server, 3)
        with ThreadPoolExecutor(clients) as threads:
            asking = [threads.submit(ask_on, server, notes, number, stop) for number in range(clients)]
            killed = kill_at_random(server, times(6, 60))
            stop.set()
            statuses = {id: status for asked in asking for id, status in asked.result().items()}
        runs = notes.runs()
        assert set(statuses.values()) <= {200, 500}
        assert sum(status == 500 for status in statuses.values()) <= killed
        assert all(1 <= runs[id] <= (2 if rerun else 1) for id, status in statuses.items() if status == 200)
        assert set(runs) <= set(statuses), "the script was given a call that nobody sent"
        wait_until(lambda: server.metric("panglot_requests_in_progress") == 0)


def ask_on(server: Server, notes: Notes, number: int, stop: threading.Event) -> dict[int, int]:
    """The status of each call that was asked on one connection, one after the other."""
    seen: dict[int, int] = {}
    with Caller(server) as caller:
        for id in itertools.count(number * 1_000_000):
            if stop.is_set():
                return seen
            answer = caller.post(notes.item(id))
            seen[id] = answer.status
            assert answer.status != 200 or answer.json()["id"] == id
    raise AssertionError


def kill_at_random(server: Server, count: int) -> int:
    chance = random.Random(31)
    for _ in range(count):
        time.sleep(chance.uniform(0.05, 0.3))
        wait_until(lambda: server.metric("panglot_workers", state="ready") >= 2)
        with contextlib.suppress(psutil.NoSuchProcess, IndexError):
            chance.choice(server.workers()).kill()
    return count
