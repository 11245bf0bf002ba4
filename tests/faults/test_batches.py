"""Items that share a batch do not share a fate, and every caller gets its own answer."""

from __future__ import annotations

import itertools
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from support.after import unharmed
from support.pool import Lend
from support.server import Server, serving
from support.traffic import Caller, Gate, answers, burst, rounds, send_as_batch, times

NORMAL, EXPECTED = {"id": 1}, {"id": 1, "twice": 2}
SINGLE, BATCH, OVERLAPPING = (f"fault_script/{name}.py" for name in ("single", "batch", "overlapping"))
QUICK = ("--restart-delay", "0.1", "--restart-delay-max", "0.2")
FULL_OR_SOON = ("--max-batch", "4", "--max-wait-ms", "50")
"""Four requests that arrive in a burst are one batch."""


def poisoned(op: str, place: int, number: int = 0) -> list[dict[str, object]]:
    """Four items, one of which is poison: another one for each number, since the same would soon be refused."""
    items: list[dict[str, object]] = [{"id": id} for id in range(10, 14)]
    items[place].update(op=op, number=number)
    return items


def test_one_of_four_raises(tmp_path: Path, lend: Lend) -> None:
    """Three right answers and one 500, whose traceback is in the log only."""
    with lend(BATCH, *QUICK) as server, unharmed(server, NORMAL, EXPECTED):
        for place in range(4):
            mark = len(server.lines)
            sent = send_as_batch(server, Gate(tmp_path / str(place)), poisoned("fail", place))
            answered = answers(server, sent)
            assert [answer.status for answer in answered] == [500 if n == place else 200 for n in range(4)]
            assert all(answer.json()["twice"] == 2 * id for id, answer in enumerate(answered, 10) if id != 10 + place)
            assert b"poison" not in answered[place].body
            server.wait_log(f"ValueError: item {10 + place} is poison", after=mark)
        assert server.metric("panglot_worker_restarts_total") == 0


def test_with_a_batch_that_waited_for_company() -> None:
    """The same for a batch that formed by waiting."""
    with serving(BATCH, *FULL_OR_SOON) as server, unharmed(server, NORMAL, EXPECTED):
        answered = answers(server, burst(server, poisoned("fail", 2)))
        assert [answer.status for answer in answered] == [200, 200, 500, 200]
        server.wait_log("batch of 4")


def test_one_of_four_crashes(tmp_path: Path, lend: Lend) -> None:
    """Three right answers, one 500, and no more than two workers lost."""
    with lend(BATCH, *QUICK) as server:
        for number, chance in enumerate(rounds(2)):
            with unharmed(server, NORMAL, EXPECTED):
                before = server.metric("panglot_worker_restarts_total", reason="died")
                place = chance.randrange(4)
                sent = send_as_batch(server, Gate(tmp_path / str(number)), poisoned("crash", place, number))
                answered = answers(server, sent)
                assert [answer.status for answer in answered] == [500 if n == place else 200 for n in range(4)]
                assert answered.pop(place).code == "worker_died"
                assert all(answer.json()["twice"] == 2 * answer.json()["id"] for answer in answered)
                assert server.metric("panglot_worker_restarts_total", reason="died") - before <= 2


WRONG_RESULTS = {
    "too_few": "got 4 items and returned 3 results",
    "too_many": "got 4 items and returned 5 results",
    "none": r"one result per item \(4\), not NoneType",
    "generator": r"one result per item \(4\), not generator",
    "dict": r"one result per item \(4\), not dict",
}


@pytest.mark.parametrize("results", WRONG_RESULTS)
def test_not_one_result_per_item(results: str, lend: Lend) -> None:
    """Nobody gets an answer that may be another's: 500 for each, and the log tells the author why."""
    with lend("fault_results", *FULL_OR_SOON) as server, unharmed(server, {"id": 1}, 1):
        answered = answers(server, burst(server, [{"id": id, "results": results} for id in range(10, 14)]))
        assert [(answer.status, answer.code) for answer in answered] == [(500, "script_error")] * 4
        server.wait_log(WRONG_RESULTS[results])
        assert server.metric("panglot_worker_restarts_total") == 0


def test_mixed_shapes_in_one_batch() -> None:
    """Items that cannot be stacked are run one by one, and all of them are right."""
    normal = {"shape": [2, 2], "value": 1}
    shapes = [[28, 28], [224, 224], [28, 28], [1, 1]]
    with serving("fault_shapes", *FULL_OR_SOON) as server, unharmed(server, normal, 4.0):
        answered = answers(server, burst(server, [{"shape": shape, "value": 2} for shape in shapes]))
        assert [answer.json() for answer in answered] == [2.0 * rows * columns for rows, columns in shapes]
        server.wait_log("batch of 4")
        server.wait_log("a batch of 4 failed .* 0 failed alone")


@pytest.mark.parametrize("script", [SINGLE, BATCH, OVERLAPPING])
def test_every_caller_gets_its_own_answer(script: str) -> None:
    """Many callers, random delays, and not one answer that belongs to another."""
    callers, total = 48, times(1_200, 36_000)
    with serving(script, "--workers", "2", "--queue", "1000") as server, unharmed(server, NORMAL, EXPECTED):
        before = server.metric("panglot_requests_total", route="/predict", status="200")
        with ThreadPoolExecutor(callers) as threads:
            wrong = list(itertools.chain(*threads.map(lambda n: echo(server, n, total // callers), range(callers))))
        assert wrong == []
        after = server.metric("panglot_requests_total", route="/predict", status="200")
        assert after - before == total // callers * callers


def delay(chance: random.Random) -> dict[str, object]:
    """Mostly none, sometimes a few milliseconds, rarely long enough for others to be taken elsewhere."""
    lot = chance.random()
    if lot < 0.003:
        return {"op": "sleep", "seconds": 0.25}
    return {"op": "sleep", "seconds": chance.uniform(0, 0.004)} if lot < 0.2 else {}


def echo(server: Server, caller: int, count: int) -> list[str]:
    """Ask with ids of one's own; what came back wrong."""
    chance = random.Random(caller)
    wrong = []
    with Caller(server) as connection:
        for id in range(caller * 1_000_000, caller * 1_000_000 + count):
            value = {"id": id, **delay(chance)}
            answer = connection.post(value)
            if answer.status != 200 or answer.json() != {"id": id, "twice": 2 * id}:
                wrong.append(f"asked {value}, got {answer.status} {answer.body[:200]!r}")
    return wrong
