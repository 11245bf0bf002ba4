"""Workers that stand still because the client of their stream reads slowly, and for how long they may."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from panglot.engine.call import RUNNING, Call

if TYPE_CHECKING:
    from panglot.engine.workers.link import Link
    from panglot.engine.workers.worker import Worker

LONGEST_TICK = 1.0
"""Seconds that count at most between two looks: longer ones are a stall of our own."""


class Hold:
    """Whether a worker is held back, and for which call. It alone pauses and resumes the link.

    Nothing is read from a worker that is held, so that it blocks once the kernel holds enough of its stream. The hold
    belongs to one call, and ends with it in whatever way the call ends: who takes calls from `in_flight`, or makes
    one DONE, calls `check`. It is not enough to wait until the client has read: frames that were in the link's buffer
    when the link was paused are still passed on, the last one of the stream among them, and nobody waits for the
    client of a call that is over.
    """

    __slots__ = ("_in_flight", "_link", "_over", "_stood", "_stood_for", "call")

    def __init__(self, link: Link, in_flight: Mapping[int, Call]) -> None:
        self._link = link
        self._in_flight = in_flight
        self.call: Call | None = None
        """The call whose client reads too slowly; None: the worker is not held."""
        self._over = False
        self._stood = 0.0
        self._stood_for = 0

    def begin(self, call: Call) -> None:
        """Hold the worker back until the client of this call has read more, or the call has ended."""
        if not self._over:
            self.call = call
            self._link.pause()
            self.check()

    def end(self, call: Call) -> None:
        """Go on: the client of this call has read."""
        if self.call is call:
            self._release()

    def check(self) -> None:
        """End the hold if its call has ended, or has left the worker."""
        call = self.call
        if call is not None and (call.state != RUNNING or self._in_flight.get(call.id) is not call):
            self._release()

    def close(self) -> None:
        """Never hold the worker again: its process has ended. What it has left unread is little, and is read now."""
        self._over = True
        self._release()

    def _release(self) -> None:
        self.call = None
        self._link.resume()

    def stood_still(self, seconds: float, others_wait: bool) -> float:
        """How long its present stream has kept others waiting, now that `seconds` more have passed.

        Time in which the worker goes on is set off against that: who reads in bursts holds it as long as who does not
        read, and who is a little slower than the script costs others little.
        """
        if self.call is None:
            self._stood = max(0.0, self._stood - seconds)
        elif self.call.id != self._stood_for:
            self._stood_for, self._stood = self.call.id, 0.0
        elif others_wait:
            self._stood += seconds
        return self._stood


class SlowReaders:
    """Chooses the streams that end because they keep others waiting for too long. This class only decides."""

    def __init__(self, longest: float) -> None:
        """`longest` is how many seconds a stream may keep others waiting; 0: for ever."""
        self.longest = longest
        self._looked = 0.0

    def due(self, workers: Sequence[Worker], waiting: int, now: float) -> list[Call]:
        """The calls whose streams are to end now, given that `waiting` others wait for any worker.

        No more than would help: the longest held first, one for each call that waits for any worker.
        """
        seconds, self._looked = min(LONGEST_TICK, now - self._looked), now
        due: list[tuple[float, Call, bool]] = []
        for worker in workers:
            behind = worker.waiting_behind > 0
            stood = worker.hold.stood_still(seconds, behind or waiting > 0)
            if worker.hold.call is not None and self.longest and stood > self.longest:
                due.append((stood, worker.hold.call, behind))
        due.sort(key=lambda entry: -entry[0])
        return [call for position, (_, call, behind) in enumerate(due) if behind or position < waiting]
