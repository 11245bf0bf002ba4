"""When a worker is paused for a client that reads slowly, and when its stream is cancelled for the sake of others."""

from __future__ import annotations

from typing import Any, cast

import pytest

from panglot.engine.call import DONE, RUNNING, Call
from panglot.engine.pools.slow_readers import LONGEST_TICK, SlowReaders, StreamPause

LONGEST = 10.0


class Link:
    """A link that only notes whether it is read."""

    def __init__(self) -> None:
        self.is_read = True

    def pause(self) -> None:
        self.is_read = False

    def resume(self) -> None:
        self.is_read = True


class Streaming:
    """A worker whose stream a client reads."""

    def __init__(self, number: int = 1, waiting_behind: int = 0) -> None:
        self.call = Call()
        self.call.id, self.call.state = number, RUNNING
        self.in_flight = {number: self.call}
        self.link = Link()
        self.stream_pause = StreamPause(cast(Any, self.link), self.in_flight)
        self.waiting_behind = waiting_behind

    def pause(self) -> None:
        self.stream_pause.begin(self.call)

    def go_on(self) -> None:
        self.stream_pause.end(self.call)


class Rules:
    """The rules, and the time that passes for them."""

    def __init__(self, *workers: Streaming) -> None:
        self.rules = SlowReaders(LONGEST)
        self.workers = cast(Any, workers)
        self.now = 0.0
        self.rules.due(self.workers, 0, self.now)

    def after(self, seconds: float, waiting: int) -> list[Call]:
        """The calls to cancel after so many seconds, in which so many others wait."""
        due: list[Call] = []
        end = self.now + seconds
        while self.now < end and not due:
            self.now += LONGEST_TICK / 2
            due = self.rules.due(self.workers, waiting, self.now)
        return due


def ended(worker: Streaming) -> None:
    worker.call.state = DONE


def elsewhere(worker: Streaming) -> None:
    del worker.in_flight[worker.call.id]


@pytest.mark.parametrize("end", [ended, elsewhere])
def test_a_worker_is_never_paused_for_a_call_that_it_runs_no_more(end: Any) -> None:
    worker = Streaming()
    worker.pause()
    assert not worker.link.is_read
    end(worker)
    worker.stream_pause.check()
    assert worker.link.is_read
    worker.pause()
    assert worker.link.is_read, "nobody would resume it"


def test_a_worker_that_has_ended_is_never_paused() -> None:
    worker = Streaming()
    worker.pause()
    worker.stream_pause.close()
    assert worker.link.is_read
    worker.pause()
    assert worker.link.is_read


def test_only_the_client_of_the_present_stream_resumes_it() -> None:
    worker, other = Streaming(), Streaming(2)
    worker.pause()
    worker.stream_pause.end(other.call)
    assert not worker.link.is_read
    worker.go_on()
    assert worker.link.is_read


def test_a_stream_that_others_wait_for_is_cancelled() -> None:
    worker = Streaming()
    worker.pause()
    rules = Rules(worker)
    assert rules.after(LONGEST - 1, waiting=1) == []
    assert rules.after(2, waiting=1) == [worker.call]


def test_reading_now_and_then_does_not_help() -> None:
    worker = Streaming()
    rules = Rules(worker)
    for _ in range(int(LONGEST)):
        worker.pause()
        if rules.after(2, waiting=1):
            return
        worker.go_on()
        assert rules.after(0.5, waiting=1) == []
    raise AssertionError("it holds the worker for ever")


def test_a_client_that_mostly_reads_is_not_cut_off() -> None:
    worker = Streaming()
    rules = Rules(worker)
    for _ in range(10 * int(LONGEST)):
        worker.pause()
        assert rules.after(1, waiting=1) == []
        worker.go_on()
        assert rules.after(1.5, waiting=1) == []


def test_time_in_which_nobody_waits_does_not_count() -> None:
    worker = Streaming()
    worker.pause()
    rules = Rules(worker)
    assert rules.after(10 * LONGEST, waiting=0) == []
    assert rules.after(LONGEST - 1, waiting=1) == []
    assert rules.after(2, waiting=1) == [worker.call]


def test_time_in_which_the_front_stood_still_counts_little() -> None:
    worker = Streaming()
    worker.pause()
    rules = Rules(worker)
    rules.now += 10 * LONGEST
    assert rules.rules.due(rules.workers, 1, rules.now) == []


def test_the_next_stream_of_a_worker_begins_anew() -> None:
    worker = Streaming()
    worker.pause()
    rules = Rules(worker)
    assert rules.after(LONGEST - 1, waiting=1) == []
    elsewhere(worker)
    worker.call = Call()
    worker.call.id, worker.call.state = 2, RUNNING
    worker.in_flight[2] = worker.call
    worker.pause()
    assert rules.after(LONGEST - 1, waiting=1) == []


def test_no_more_streams_are_cancelled_than_calls_wait() -> None:
    """The longest paused first; and each stream with calls behind it that no other worker can have."""
    first, second, third = Streaming(1), Streaming(2), Streaming(3, waiting_behind=1)
    rules = Rules(second, first, third)
    first.pause()
    assert rules.after(1, waiting=1) == []
    second.pause()
    third.pause()
    due = rules.after(LONGEST, waiting=1)
    assert due == [first.call]
    rules.now += LONGEST_TICK
    rules.rules.due(rules.workers, 1, rules.now)
    rules.now += LONGEST_TICK
    assert rules.rules.due(rules.workers, 1, rules.now) == [first.call, third.call]


def test_without_a_limit_nobody_is_cut_off() -> None:
    worker = Streaming()
    worker.pause()
    rules = Rules(worker)
    rules.rules.longest = 0.0
    assert rules.after(10 * LONGEST, waiting=1) == []
