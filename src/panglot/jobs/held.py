"""Jobs whose clients wait for the answer: they run as requests do, and are stored when their clients wait no longer.

A client that waits for its answer needs no store: if the server dies, the connection ends, and the client knows that it
has no answer. On some platforms every call is a job. There most synchronous calls cost as little as requests.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection

from panglot.engine.call import RUNNING as CALL_RUNS
from panglot.engine.call import Call, Fault, MemoryQuota
from panglot.jobs.interface import JobState
from panglot.jobs.job import CANCELLED, QUEUED, RUNNING, Claimed, Job, JobOutcome, NewJob, StoredAnswer
from panglot.jobs.running import JobCall, Writer
from panglot_worker.line import wire

WAS_CANCELLED = Fault(410, "job_cancelled", "the job was cancelled")
"""The answer to the client of a held job that another client has cancelled."""


class HeldCall(JobCall):
    """The run of a job that is not stored. Once it is stored, `claimed` is replaced, and its end goes to the board."""

    __slots__ = ("accepted", "new", "times")

    background = False

    def __init__(
        self,
        new: NewJob,
        now: float,
        quota: MemoryQuota,
        write_fault: Writer,
        ended: Callable[[JobCall, JobOutcome | Fault], None],
        changed: Callable[[str], None],
        cancel: Callable[[Call], None],
    ) -> None:
        self.new = new
        self.accepted = now
        self.times: wire.Times = wire.NO_TIMES
        """The times of the script's stages."""
        claimed = Claimed(self._job(QUEUED), new.head, new.lane, new.run_timeout, new.body)
        super().__init__(claimed, quota, write_fault, ended, changed, cancel)

    def reply(self, reply: wire.Reply) -> None:
        self.times = reply.times
        super().reply(reply)

    @property
    def started(self) -> float:
        """When a worker got it, in seconds since 1970; the present moment while it waits."""
        since = self.dispatched if self.dispatched else time.monotonic()
        return self.accepted + max(0.0, since - self.arrived)

    def shown(self) -> Job:
        """The job as clients see it while it runs."""
        return self._job(RUNNING, self.started) if self.state == CALL_RUNS else self._job(QUEUED)

    def cancelled(self, now: float) -> Job:
        return self._job(CANCELLED, ended=now)

    def finished(self, end: JobOutcome, now: float) -> tuple[Job, StoredAnswer]:
        """The job as it would be stored with this end, and its answer."""
        ends = tuple(int.from_bytes(end.parts[at : at + 8], "big") for at in range(0, len(end.parts), 8))
        return self._job(end.state, self.started, now, end), StoredAnswer(end.status, end.head, end.body, ends)

    def _job(
        self, state: int, started: float | None = None, ended: float | None = None, end: JobOutcome | None = None
    ) -> Job:
        new = self.new
        expires = self.accepted + new.lifetime
        status, head, size, parts, fault = None, None, 0, None, None
        if end is not None:
            status, head, size, parts, fault = end.status, end.head, len(end.body), end.parts, end.fault
        return Job(
            0, new.id, new.model, new.route, new.owner, new.key, state, 1, 0, self.accepted, started, ended, expires,
            expires, new.retain, None, new.own, len(new.body), status, head, size, None, 0, parts, fault,
        )  # fmt: skip


class HeldJobs:
    """The held jobs of a front, by id."""

    def __init__(self, now: Callable[[], float], durable: bool, changed: Callable[[str], None]) -> None:
        """`changed` is called with the id of a job that has changed."""
        self.now = now
        self.changed = changed
        self.by_id: dict[str, HeldCall] = {}
        self._durable = durable

    def add(self, call: HeldCall) -> None:
        self.by_id[call.new.id] = call

    def remove(self, call: HeldCall) -> None:
        """Forget a job that has ended, or is stored by now. May be called again."""
        if self.by_id.pop(call.new.id, None) is not None:
            self.changed(call.new.id)

    def get(self, name: str) -> JobState | None:
        call = self.by_id.get(name)
        return None if call is None else self._state(call)

    def cancel(self, name: str) -> JobState | None:
        """Cancel a held job, and answer its client; None where there is none of this id."""
        call = self.by_id.get(name)
        if call is None:
            return None
        # The engine first: it tells no end of a cancelled call, so `ended` is called once.
        call.cancel(call)
        call.ended(call, WAS_CANCELLED)
        return JobState(call.cancelled(self.now()), self._durable)

    def listed(self, states: Collection[int], model: str) -> list[JobState]:
        """The newest first."""
        of_model = (self._state(call) for call in reversed(self.by_id.values()) if not model or call.new.model == model)
        return [state for state in of_model if not states or state.job.state in states]

    def counts(self) -> Counter[tuple[str, int]]:
        """Held jobs by model and state."""
        states = ((call.new.model, RUNNING if call.state == CALL_RUNS else QUEUED) for call in self.by_id.values())
        return Counter(states)

    def _state(self, call: HeldCall) -> JobState:
        return JobState(call.shown(), self._durable, call.progress, call.printed_text, len(call.parts))
