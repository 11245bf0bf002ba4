"""Scripts that do not come back, and answers that come too late."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from support.after import unharmed
from support.pool import Lend
from support.server import Server, serving, wait_until
from support.traffic import Caller, Gate, answers, ask_all, burst, occupy, rounds, send, send_as_batch, times

NORMAL, EXPECTED = {"id": 1}, {"id": 1, "twice": 2}
SINGLE, BATCH, OVERLAPPING = (f"fault_script/{name}.py" for name in ("single", "batch", "overlapping"))
QUICK = ("--restart-delay", "0.1", "--restart-delay-max", "0.2")


def hang(lend: Lend, script: str, op: str) -> None:
    """A request that hangs is answered 504 at its deadline and its worker killed; the other worker serves meanwhile."""
    flags = ("--workers", "2", "--timeout", "4", "--kill-grace", "0.3", *QUICK)
    with lend(script, *flags) as server:
        wait_until(lambda: server.metric("panglot_workers", state="ready") == 2)
        for number, _ in enumerate(rounds(1, 10)):
            with unharmed(server, NORMAL, EXPECTED):
                ask_all(server, [{"id": id} for id in range(40)])
                mark = len(server.lines)
                pids = {worker.pid for worker in server.workers()}
                # Another body each time: the same would soon be refused.
                guilty = send(server, {"id": 5, "op": op, "number": number})
                server.wait_log("item 5 (loops|holds)", after=mark)
                time.sleep(0.1)
                for start in range(100, times(120, 160), 20):
                    others = ask_all(server, [{"id": id} for id in range(start, start + 20)], seconds=8)
                    assert [answer.status for answer in others] == [200] * 20
                    assert [answer.json()["id"] for answer in others] == list(range(start, start + 20))
                assert not guilty.done(), "the others must be served while it hangs"
                (late,) = answers(server, [guilty])
                assert (late.status, late.code) == (504, "timeout")
                assert late.seconds >= 3.9
                server.wait_log("was killed: one call ran longer than 4 s", after=mark)
                wait_until(lambda pids=pids: len(pids & {worker.pid for worker in server.workers()}) == 1)


@pytest.mark.parametrize("script", [SINGLE, BATCH])
def test_endless_python_loop(script: str, lend: Lend) -> None:
    """504 at the deadline, the worker killed, the other worker serving meanwhile."""
    hang(lend, script, "loop")


@pytest.mark.parametrize("script", [SINGLE, BATCH])
def test_endless_call_that_holds_the_gil(script: str, lend: Lend) -> None:
    """The same when no Python code of the worker can run any more: the kill comes from outside."""
    hang(lend, script, "hold_gil")


def test_an_async_script_that_holds_the_gil() -> None:
    """What an async worker held when it got stuck is run again elsewhere, and only the culprit gets 504."""
    flags = ("--workers", "2", "--timeout", "40", "--run-timeout", "1", "--kill-grace", "0.2", *QUICK)
    with serving(OVERLAPPING, *flags) as server, unharmed(server, NORMAL, EXPECTED):
        guilty = send(server, {"id": 5, "op": "hold_gil"})
        server.wait_log("item 5 holds")
        others = ask_all(server, [{"id": id} for id in range(100, 120)], 25)
        assert [answer.status for answer in others] == [200] * 20
        assert [answer.json()["id"] for answer in others] == list(range(100, 120))
        (late,) = answers(server, [guilty], 25)
        assert (late.status, late.code) == (504, "timeout")


def test_nobody_waits_behind_an_endless_loop() -> None:
    """Requests that arrived together with one that loops, and were sent to the same worker, are served too."""
    with serving(SINGLE, "--workers", "2", "--timeout", "8", "--kill-grace", "0.3", *QUICK) as server:
        wait_until(lambda: server.metric("panglot_workers", state="ready") == 2)
        with unharmed(server, NORMAL, EXPECTED):
            ask_all(server, [{"id": id} for id in range(100)])
            loops, *others = burst(server, [{"id": 5, "op": "loop"}, *({"id": id} for id in range(100, 140))])
            answered = answers(server, others, 7)
            assert [answer.status for answer in answered] == [200] * 40
            assert [answer.json()["id"] for answer in answered] == list(range(100, 140))
            assert not loops.done()
            assert answers(server, [loops])[0].status == 504
            server.wait_log("was killed: one call ran longer than 8 s")


@pytest.mark.parametrize("script", [SINGLE, OVERLAPPING])
def test_worker_stopped(script: str, tmp_path: Path) -> None:
    """A worker that stands still is treated as one that hangs: 504, and another takes its place."""
    with serving(script, "--timeout", "1.5", "--kill-grace", "0.3", *QUICK) as server:
        for number, _ in enumerate(rounds(1, 10)):
            with unharmed(server, NORMAL, EXPECTED):
                gate = Gate(tmp_path / str(number))
                asked = occupy(server, gate, 4)
                (worker,) = server.workers()
                worker.suspend()
                gate.open()
                assert answers(server, [asked])[0].status == 504
                wait_until(lambda pid=worker.pid: pid not in [process.pid for process in server.workers()])


@pytest.mark.parametrize("script", [SINGLE, BATCH, OVERLAPPING])
def test_late_answers_reach_nobody(script: str) -> None:
    """After an answer that came too late, the next caller gets its own."""
    flags = ("--workers", "2", *QUICK)
    with serving(script, *flags) as server, unharmed(server, NORMAL, EXPECTED):
        callers = 4
        each = times(120, 1000) // callers
        with ThreadPoolExecutor(callers) as threads:
            late = sum(threads.map(lambda caller: alternate(server, caller * 10_000, each), range(callers)))
        assert late >= callers * each // 2, "most slow requests must have run into their timeout"


def alternate(server: Server, first: int, count: int) -> int:
    """Slow and fast requests in turn on one connection; how many were too slow."""
    late = 0
    with Caller(server) as caller:
        for id in range(first, first + 2 * count, 2):
            slow = caller.post({"id": id, "op": "sleep", "seconds": 0.04}, timeout_ms=10)
            if slow.status == 504:
                late += 1
            else:
                assert slow.json()["id"] == id
            fast = caller.post({"id": id + 1})
            assert (fast.status, fast.json()) == (200, {"id": id + 1, "twice": 2 * id + 2})
    return late


def test_one_of_four_loops(tmp_path: Path) -> None:
    """The mates of an item that hangs are run again and answered; it gets 504."""
    flags = ("--timeout", "40", "--run-timeout", "2", "--kill-grace", "0.2", *QUICK)
    with serving(BATCH, *flags) as server:
        for number, chance in enumerate(rounds(1, 10)):
            with unharmed(server, NORMAL, EXPECTED):
                mark = len(server.lines)
                place = chance.randrange(4)
                items = [{"id": id} for id in range(10, 14)]
                items[place] = {"id": 5, "op": "loop", "number": number}
                answered = answers(server, send_as_batch(server, Gate(tmp_path / str(number)), items), 25)
                guilty = answered.pop(place)
                assert (guilty.status, guilty.code) == (504, "timeout")
                assert [answer.status for answer in answered] == [200] * 3
                mates = [item["id"] for item in items if item["id"] != 5]
                assert [answer.json() for answer in answered] == [{"id": id, "twice": 2 * id} for id in mates]
                server.wait_log("one call ran longer than 2 s", after=mark)
                server.wait_log(r"harm\.py.*in loop", after=mark)


@pytest.mark.parametrize("script", [SINGLE, BATCH, OVERLAPPING])
def test_deadline_passes_in_the_queue(script: str, tmp_path: Path, lend: Lend) -> None:
    """A request that waited too long gets 504 while the worker is still busy, and never reaches the script."""
    with lend(script, "--slots", "1", *QUICK) as server, unharmed(server, NORMAL, EXPECTED):
        ask_all(server, [{"id": id} for id in range(20)])
        gate = Gate(tmp_path / "gate")
        plug = occupy(server, gate, 4)
        late = answers(server, [send(server, {"id": id, "op": "note"}, timeout_ms=100) for id in range(50, 54)])
        assert [(answer.status, answer.code) for answer in late] == [(504, "timeout")] * 4
        assert all(answer.seconds >= 0.09 for answer in late)
        assert not plug.done()
        gate.open()
        assert answers(server, [plug])[0].json() == {"id": 4, "twice": 8}
        assert ask_all(server, [{"id": 60, "op": "note"}])[0].status == 200
        server.wait_log("item 60 was executed")
        assert "item 5" not in server.log
