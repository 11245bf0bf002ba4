"""Jobs that one front runs and another stores: their clients waited for the answer, and do so no longer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

from panglot.engine.call import RUNNING as CALL_RUNS
from panglot.engine.call import Call, CallProgress, Fault, Uncounted
from panglot.jobs.board import JobBoard
from panglot.jobs.held import HeldCall
from panglot.jobs.job import Claimed, Job, JobOutcome, JobTrouble, NewJob
from panglot.jobs.running import JobCall

BREATH = 0.1
"""Seconds between two reports of the progress of runs."""
FRONT_DIED = Fault(500, "worker_died", "the process that ran the job has died")


class AdoptedRuns:
    """The adopted jobs in the front that runs them. `tell` sends a command to the front that stores them."""

    def __init__(self, tell: Callable[..., None]) -> None:
        self._tell = tell
        self._runs: dict[str, HeldCall] = {}
        self._changed: set[str] = set()
        self._told: dict[str, int] = {}
        """By job: how many parts of its answer the other front has."""

    def add(self, call: HeldCall, job: Job, ends: list[JobOutcome | Fault]) -> None:
        call.claimed = call.claimed._replace(job=job)
        self._runs[job.id] = call
        call.ended, call.changed = self._ended, self._report
        for end in ends:
            self._ended(call, end)

    def drop(self, name: str) -> None:
        """Cancel a run: its job was cancelled."""
        call = self._forget(name)
        if call is not None:
            call.cancel(call)

    def drop_all(self) -> None:
        """Cancel all runs: the front that stored them is gone. Its successor runs these jobs again."""
        for name in list(self._runs):
            self.drop(name)

    def _forget(self, name: str) -> HeldCall | None:
        call = self._runs.pop(name, None)
        self._told.pop(name, None)
        if call is not None:
            call.release_parts()
        return call

    def _ended(self, call: JobCall, end: JobOutcome | Fault) -> None:
        if self._forget(call.job.id) is not None:
            self._tell("over", call.job.id, end)

    def _report(self, name: str) -> None:
        if not self._changed:
            asyncio.get_running_loop().call_later(BREATH, self._report_all)
        self._changed.add(name)

    def _report_all(self) -> None:
        names, self._changed = self._changed, set()
        for name in names:
            call = self._runs.get(name)
            if call is not None:
                after = self._told.get(name, 0)
                self._told[name] = len(call.parts)
                self._tell("report", name, call.progress, call.printed_text, call.parts[after:])


class RunsElsewhere:
    """The adopted jobs in the front that stores them: a call for each run of another front."""

    def __init__(self, board: JobBoard, drop: Callable[[int, str], None]) -> None:
        """`drop` has a front cancel its run of a job."""
        self._board = board
        self._drop = drop
        self._runs: dict[str, tuple[int, JobCall]] = {}
        """The front of each run, and its call here."""
        self._adopting: dict[str, int] = {}
        """The fronts of runs whose jobs are being stored."""
        self._early_ends: dict[str, JobOutcome | Fault] = {}
        """The ends of such runs, if they end before that."""

    def adopt(
        self,
        front: int,
        then: Callable[[Job | JobTrouble], None],
        new: NewJob,
        accepted: float,
        started: float,
    ) -> None:
        """Store a job that a front runs."""

        def begin(job: Job) -> JobCall:
            def cancel(call: Call) -> None:
                self._runs.pop(job.id, None)
                self._drop(front, job.id)

            # No body, and no quota: the call runs in the other front, which has both.
            board, claimed = self._board, Claimed(job, new.head, new.lane, new.run_timeout, b"")
            call = JobCall(claimed, Uncounted(), write_fault, board.over, board.wake, cancel)
            # No engine of this front will say so. A run that has begun does not end with the lifetime of its job.
            call.state = CALL_RUNS
            self._runs[job.id] = (front, call)
            return call

        def write_fault(route: str, fault: Fault, request_id: bytes) -> tuple[int, bytes, bytes]:
            runner = self._board.runners.get(new.model)
            if runner is not None:
                return runner.write_fault(route, fault, request_id)
            # The model was unloaded meanwhile, so nobody knows the form of its platform.
            error = {"error": {"code": fault.code, "message": fault.message}}
            return fault.status, b"application/json", json.dumps(error).encode()

        def stored(result: Job | JobTrouble) -> None:
            del self._adopting[new.id]
            end = self._early_ends.pop(new.id, None)
            then(result)
            if isinstance(result, Job) and end is not None:
                self.over(result.id, end)

        self._adopting[new.id] = front
        self._board.adopt_as(new, accepted, started, begin, stored)

    def report(self, name: str, progress: CallProgress | None, printed: str, parts: list[bytes]) -> None:
        run = self._runs.get(name)
        if run is not None:
            call = run[1]
            call.progress, call.printed_text = progress, printed
            call.parts += parts
            self._board.wake(name)

    def over(self, name: str, end: JobOutcome | Fault) -> None:
        if name in self._adopting:
            self._early_ends[name] = end
        run = self._runs.pop(name, None)
        if run is not None:
            self._board.over(run[1], end)

    def lost(self, front: int) -> None:
        """Try the jobs of a front that died again, as after the death of a worker."""
        runs = {name: runs_it for name, (runs_it, _) in self._runs.items()} | self._adopting
        for name in [name for name, runs_it in runs.items() if runs_it == front and name not in self._early_ends]:
            self.over(name, FRONT_DIED)
