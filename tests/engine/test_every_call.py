"""Queue and fates together: whatever workers do, no accepted call is lost, answered twice, overtaken or miscounted."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from panglot.engine.call import DONE, QUEUED, RUNNING, Call
from panglot.engine.pools import after_death
from panglot.engine.pools.queue import Policy, Queue

MOST, MOST_BYTES, BATCH_BYTES = 10, 100, 60
WORKERS = 2


class Calls(RuleBasedStateMachine):
    """The pool's moves without processes: calls arrive, are sent, answered, given up, taken back, lose their worker."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = Queue(MOST, MOST_BYTES)
        self.waiting: list[Call] = []
        """What the queue holds, in order."""
        self.held: list[list[Call]] = [[] for _ in range(WORKERS)]
        """What each worker holds, in the order it was sent."""
        self.accepted: list[Call] = []
        self.answers: dict[int, int] = {}
        self.suspected: dict[int, int] = {}
        """How often a call was running when its worker died."""

    @initialize(batched=st.booleans(), rerun=st.booleans())
    def begin(self, batched: bool, rerun: bool) -> None:
        self.batched, self.rerun = batched, rerun

    @rule(size=st.integers(0, 50))
    def arrive(self, size: int) -> None:
        call = Call()
        call.id, call.size = len(self.accepted) + 1, size
        full = len(self.waiting) >= MOST or (self.waiting and self._bytes() + size > MOST_BYTES)
        assert self.queue.offer(call) is not bool(full)
        if not full:
            self.waiting.append(call)
            self.accepted.append(call)

    @precondition(lambda self: self.waiting)
    @rule(worker=st.integers(0, WORKERS - 1), most=st.integers(1, 5), share=st.integers(1, 5))
    def send(self, worker: int, most: int, share: int) -> None:
        held = self.held[worker]
        if held and (self.batched or held[0].alone):
            return
        batch, _, _ = self.queue.take(Policy(most, BATCH_BYTES), 0.0, idle=not held, share=share)
        assert batch == self.waiting[: len(batch)]
        assert len(batch) <= min(most, share)
        assert len(batch) == 1 or not any(call.alone for call in batch)
        assert len(batch) <= 1 or sum(call.size for call in batch) <= BATCH_BYTES
        if not batch:
            assert not self.waiting or (held and self.waiting[0].alone)
        del self.waiting[: len(batch)]
        for call in batch:
            call.state = RUNNING
        held.extend(batch)

    @precondition(lambda self: any(self.held))
    @rule(data=st.data(), part=st.sampled_from([False, False, True]))
    def answer(self, data: st.DataObject, part: bool) -> None:
        """The first call is answered, or a part of its stream."""
        held = self._busy(data)
        if part:
            held[0].chunks += 1
        elif held[0].state == RUNNING:
            self._end(held.pop(0))
        else:
            del held[0]

    @precondition(lambda self: self.accepted)
    @rule(data=st.data())
    def give_up(self, data: st.DataObject) -> None:
        """The client goes, or its time is over: the call ends where it is."""
        call = data.draw(st.sampled_from(self.accepted))
        if call.state == DONE:
            return
        queued = call.state == QUEUED
        self._end(call)
        if queued:
            self.waiting.remove(call)
            self.queue.remove(call)

    @precondition(lambda self: any(self.held) and not self.batched)
    @rule(data=st.data())
    def take_back(self, data: st.DataObject) -> None:
        """What waits behind a long call goes back to the queue."""
        held = self._busy(data)
        behind = [call for call in held[1:] if call.state == RUNNING]
        del held[1:]
        self._return(behind)

    @precondition(lambda self: any(self.held))
    @rule(data=st.data(), on_purpose=st.sampled_from([False, False, False, True]))
    def die(self, data: st.DataObject, on_purpose: bool) -> None:
        held = self._busy(data)
        lost = list(held)
        held.clear()
        running = 0 if on_purpose else len(lost) if self.batched else 1
        live = [call for call in lost if call.state == RUNNING]
        for call in lost[:running]:
            self.suspected[call.id] = self.suspected.get(call.id, 0) + (call.state == RUNNING)
        verdict = after_death.judge(lost, running, self.rerun)
        assert sorted(call.id for call in verdict.again + verdict.guilty) == sorted(call.id for call in live)
        assert verdict.again == [call for call in live if call in verdict.again]
        for call in verdict.guilty:
            assert call.chunks or (self.suspected[call.id] == 2 if self.rerun else True)
            self._end(call)
        self._return(verdict.again)

    def _busy(self, data: st.DataObject) -> list[Call]:
        """What a worker holds that holds something."""
        return data.draw(st.sampled_from([held for held in self.held if held]))

    def _return(self, calls: list[Call]) -> None:
        self.queue.put_back(calls)
        self.waiting[:0] = calls

    def _end(self, call: Call) -> None:
        call.state = DONE
        self.answers[call.id] = self.answers.get(call.id, 0) + 1

    def _bytes(self) -> int:
        return sum(call.size for call in self.waiting)

    @invariant()
    def every_call_is_in_one_place(self) -> None:
        running = [call for held in self.held for call in held if call.state == RUNNING]
        places = [call.id for call in self.waiting + running] + list(self.answers)
        assert sorted(places) == [call.id for call in self.accepted]
        assert all(count == 1 for count in self.answers.values())
        assert all(times <= 2 if self.rerun else times <= 1 for times in self.suspected.values())

    @invariant()
    def the_gauges_are_true(self) -> None:
        assert (self.queue.length, self.queue.bytes) == (len(self.waiting), self._bytes())
        assert self.queue.waiting() == self.waiting
        assert all(call.state == QUEUED for call in self.waiting)

    def teardown(self) -> None:
        """An idle worker gets all that wait, one after the other."""
        for call in self.waiting:
            assert self.queue.take(Policy(), 0.0)[0] == [call]
        assert self.queue.take(Policy(), 0.0)[0] == []
        assert (self.queue.length, self.queue.bytes) == (0, 0)


TestCalls = Calls.TestCase
TestCalls.settings = settings(max_examples=100, stateful_step_count=50, deadline=None)
