"""Which worker tries a call again that another has refused."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from panglot.engine.call import RUNNING, Call
from panglot.engine.pools.retries import Retries


def worker(*calls: Call) -> Any:
    return SimpleNamespace(in_flight=dict(enumerate(calls)))


def call(alone: bool = False) -> Call:
    made = Call()
    made.state, made.alone = RUNNING, alone
    return made


def ready(retries: Retries, *workers: Any) -> list[tuple[Call, Any]]:
    return list(retries.ready(workers, lambda worker: 2 - len(worker.in_flight)))


def test_a_call_is_tried_by_another_worker() -> None:
    retries, refused, refuser, other = Retries(3), call(), worker(), worker(call())
    assert retries.take(refused, refuser, [refuser, other])
    assert ready(retries, refuser, other) == [(refused, other)]


def test_a_call_that_may_have_killed_a_worker_waits_for_one_that_runs_nothing() -> None:
    retries, refused, refuser, other = Retries(3), call(alone=True), worker(), worker(call())
    assert retries.take(refused, refuser, [refuser, other])
    assert ready(retries, refuser, other) == []
    other.in_flight.clear()
    assert ready(retries, refuser, other) == [(refused, other)]
