"""The queue's policy, with a clock of our own."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from panglot.engine.call import DONE, QUEUED, Call
from panglot.engine.pools.queue import ALONE, FREE, FULL, WAITED, Policy, Queue
from panglot.engine.workers.restarts import Restarts


def call(number: int, size: int = 1, arrived: float = 0.0, alone: bool = False) -> Call:
    made = Call()
    made.id, made.size, made.arrived, made.alone = number, size, arrived, alone
    return made


def filled(*calls: Call, most: int = 100, most_bytes: int = 10**6) -> Queue:
    queue = Queue(most, most_bytes)
    assert all(queue.offer(one) for one in calls)
    return queue


def ids(batch: list[Call]) -> list[int]:
    return [one.id for one in batch]


def test_a_batch_is_what_is_queued() -> None:
    queue = filled(call(1), call(2), call(3))
    batch, reason, _ = queue.take(Policy(8), 0.0)
    assert (ids(batch), reason) == ([1, 2, 3], FREE)
    assert (queue.length, queue.bytes) == (0, 0)


def test_a_batch_ends_at_the_limit() -> None:
    batch, reason, _ = filled(*map(call, range(5))).take(Policy(2), 0.0)
    assert (ids(batch), reason) == ([0, 1], FULL)


def test_a_batch_ends_at_the_byte_limit_but_always_has_one() -> None:
    queue = filled(call(1, 60), call(2, 50), call(3, 500))
    assert ids(queue.take(Policy(8, 100), 0.0)[0]) == [1]
    assert ids(queue.take(Policy(8, 100), 0.0)[0]) == [2]
    assert ids(queue.take(Policy(8, 100), 0.0)[0]) == [3]


def test_waiting_counts_from_the_oldest_arrival() -> None:
    queue = filled(call(1, arrived=10.0), call(2, arrived=10.4))
    assert queue.take(Policy(4, max_wait=0.5), 10.4) == ([], "", 10.5)
    batch, reason, _ = queue.take(Policy(4, max_wait=0.5), 10.5)
    assert (ids(batch), reason) == ([1, 2], WAITED)


def test_a_full_batch_does_not_wait() -> None:
    queue = filled(call(1), call(2))
    assert ids(queue.take(Policy(2, max_wait=9.0), 0.0)[0]) == [1, 2]


def test_what_must_run_alone_runs_alone_on_an_idle_worker() -> None:
    queue = filled(call(1, alone=True), call(2), call(3))
    assert queue.take(Policy(8), 0.0, idle=False)[0] == []
    batch, reason, _ = queue.take(Policy(8), 0.0)
    assert (ids(batch), reason) == ([1], ALONE)
    assert ids(queue.take(Policy(8), 0.0)[0]) == [2, 3]


def test_a_batch_stops_before_one_that_must_run_alone() -> None:
    queue = filled(call(1), call(2, alone=True), call(3))
    assert ids(queue.take(Policy(8), 0.0)[0]) == [1]


def test_returned_calls_go_to_the_head_in_order() -> None:
    queue = filled(call(3))
    queue.put_back([call(1), call(2)])
    assert ids(queue.take(Policy(8), 0.0)[0]) == [1, 2, 3]


def test_a_full_queue_refuses_by_count_and_by_bytes() -> None:
    queue = filled(call(1), call(2), most=2)
    assert not queue.offer(call(3))
    queue = filled(call(1, 60), most_bytes=100)
    assert not queue.offer(call(2, 60))
    assert Queue(5, 10).offer(call(1, 50)), "an empty queue takes one call of any size"


@given(st.integers(1, 60))
def test_restarts_are_prompt_then_patient(deaths: int) -> None:
    restarts = Restarts(0.5, 30)
    delays = [restarts.delay() for _ in range(deaths)]
    assert delays[0] == 0
    assert delays == sorted(delays)
    assert all(0.5 <= delay <= 30 for delay in delays[1:])
    restarts.answered()
    assert restarts.delay() == 0


class QueueMachine(RuleBasedStateMachine):
    """Whatever happens, nothing is lost, doubled or reordered, and the counts are true."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = Queue(12, 100)
        self.model: list[Call] = []
        self.next_id = 0

    @rule(size=st.integers(0, 40))
    def offer(self, size: int) -> None:
        self.next_id += 1
        made = call(self.next_id, size)
        full = len(self.model) >= 12 or (self.model and sum(one.size for one in self.model) + size > 100)
        assert self.queue.offer(made) is not bool(full)
        if not full:
            self.model.append(made)

    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        if self.model:
            gone = self.model.pop(data.draw(st.integers(0, len(self.model) - 1)))
            gone.state = DONE
            self.queue.remove(gone)

    @rule(most=st.integers(1, 6))
    def take_and_keep(self, most: int) -> None:
        self._take(most)

    @rule(most=st.integers(1, 6), alone=st.booleans())
    def take_and_return(self, most: int, alone: bool) -> None:
        batch = self._take(most)
        for one in batch:
            one.alone = one.alone or alone
        self.queue.put_back(batch)
        self.model[:0] = batch

    def _take(self, most: int) -> list[Call]:
        batch, _, _ = self.queue.take(Policy(most, 60), 0.0)
        assert bool(batch) == bool(self.model)
        assert batch == self.model[: len(batch)]
        assert len(batch) <= most
        assert len(batch) == 1 or not any(one.alone for one in batch)
        assert len(batch) == 1 or sum(one.size for one in batch) <= 60
        del self.model[: len(batch)]
        return batch

    @invariant()
    def counts_are_true(self) -> None:
        assert self.queue.length == len(self.model)
        assert self.queue.bytes == sum(one.size for one in self.model)
        assert all(one.state == QUEUED for one in self.model)


TestQueueMachine = QueueMachine.TestCase


def in_lane(number: int, lane: str, alone: bool = False) -> Call:
    made = call(number, alone=alone)
    made.lane = lane
    return made


def test_a_batch_holds_one_lane_and_passes_the_others_by() -> None:
    lanes = "aabaab"
    queue = filled(*(in_lane(number, lane) for number, lane in enumerate(lanes)))
    assert ids(queue.take(Policy(3), 0.0)[0]) == [0, 1, 3]
    assert (queue.length, ids(queue.waiting())) == (3, [2, 4, 5])
    assert ids(queue.take(Policy(3), 0.0)[0]) == [2, 5]
    assert ids(queue.take(Policy(3), 0.0)[0]) == [4]


def test_nothing_passes_a_call_that_must_run_alone() -> None:
    queue = filled(in_lane(1, "a"), in_lane(2, "b"), in_lane(3, "b", alone=True), in_lane(4, "a"))
    assert ids(queue.take(Policy(3), 0.0)[0]) == [1]
    assert ids(queue.waiting()) == [2, 3, 4]


def test_lanes_mean_nothing_where_calls_run_one_by_one() -> None:
    queue = filled(in_lane(1, "a"), in_lane(2, "b"))
    assert ids(queue.take(Policy(3, one_lane=False), 0.0)[0]) == [1, 2]
