"""Storing a held job while it goes on to run."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from panglot.engine.call import Fault
from panglot.jobs.held import HeldCall
from panglot.jobs.job import Job, JobOutcome, JobTrouble
from panglot.jobs.running import JobCall

if TYPE_CHECKING:
    from panglot.jobs.board import JobBoard


def adopt(board: JobBoard, call: HeldCall, then: Callable[[Job | JobTrouble], None]) -> None:
    """Make a held job one of the board; `then` gets it as it is stored, or a JobTrouble."""
    ends = early_ends(call)

    def begin(job: Job) -> JobCall:
        call.claimed = call.claimed._replace(job=job)
        call.ended, call.changed = board.over, board.wake
        return call

    def stored(result: Job | JobTrouble) -> None:
        board.held.remove(call)
        then(result)
        for end in ends if isinstance(result, Job) else ():
            board.over(call, end)

    board.adopt_as(call.new, call.accepted, call.started, begin, stored)


def early_ends(call: HeldCall) -> list[JobOutcome | Fault]:
    """A list that gets the end of a run, if the run ends before its job is stored."""
    ends: list[JobOutcome | Fault] = []

    def ended(call: JobCall, end: JobOutcome | Fault) -> None:
        # The last one alone: a second end is a cancellation, and its client was told that the job is cancelled.
        ends[:] = [end]

    call.ended = ended
    return ends
