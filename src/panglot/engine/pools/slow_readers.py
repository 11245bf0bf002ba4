"""Workers that are paused because the client of their stream reads slowly, and for how long they may be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from panglot.engine.call import RUNNING, Call
from panglot_worker.line import wire

if TYPE_CHECKING:
    from panglot.engine.workers.link import Link
    from panglot.engine.workers.worker import Worker

LONGEST_TICK = 1.0
"""Seconds that count at most between two looks: in a longer time the front itself has stood still."""


class StreamPause:
    """The pause of a worker while the client of its stream reads too slowly. It alone pauses and resumes the link.

    Nothing is read from a paused worker, so that the worker blocks once the kernel has enough of its stream. A pause
    belongs to one call, and ends with it in whatever way the call ends: code that takes calls from `in_flight`, or
    makes one DONE, calls `check`. It is not enough to wait until the client has read: frames that were in the link's
    buffer when the link was paused are still passed on, the last frame of the stream among them, and nobody waits for
    the client of a call that has ended. The worker would be paused for ever.
    """

    __slots__ = ("_held", "_in_flight", "_link", "_over", "_stood", "_stood_for", "call")

    def __init__(self, link: Link, in_flight: Mapping[int, Call]) -> None:
        self._link = link
        self._in_flight = in_flight
        self.call: Call | None = None
        """The call of the slow client; None: the worker is not paused."""
        self._held: set[int] = set()
        """The calls that a worker which runs several was told to hold: their clients read too slowly."""
        self._over = False
        self._stood = 0.0
        self._stood_for = 0

    def begin(self, call: Call) -> None:
        """Pause the worker until the client of this call has read more, or the call has ended."""
        if not self._over:
            self.call = call
            self._link.pause()
            # The call may have ended already: its last part may be what the client is slow to read.
            self.check()

    def end(self, call: Call) -> None:
        """Go on: the client of this call has read."""
        if self.call is call:
            self._resume()

    def tell(self, call: Call, hold: bool) -> None:
        """Tell a worker that runs several calls that the client of one reads too slowly, or has read."""
        # Calls that have ended: nothing else takes them out.
        self._held.intersection_update(self._in_flight)
        if hold != (call.id in self._held):
            self._held.symmetric_difference_update((call.id,))
            self._link.send([wire.ids_frame(wire.HOLD if hold else wire.GO_ON, [call.id], self._link.generation)])

    def check(self) -> None:
        """End the pause if its call has ended, or runs elsewhere."""
        call = self.call
        if call is not None and (call.state != RUNNING or self._in_flight.get(call.id) is not call):
            self._resume()

    def close(self) -> None:
        """Never pause the worker again: its process has ended, and its last bytes are read now."""
        self._over = True
        self._resume()

    def _resume(self) -> None:
        self.call = None
        self._link.resume()

    def stood_still(self, seconds: float, others_wait: bool) -> float:
        """How long other calls have waited for the present stream, now that `seconds` more have passed.

        Time in which the worker runs is subtracted. Otherwise a client a little slower than the script, which costs
        other calls little, would in the end count like a client that does not read at all.
        """
        if self.call is None:
            self._stood = max(0.0, self._stood - seconds)
        elif self.call.id != self._stood_for:
            self._stood_for, self._stood = self.call.id, 0.0
        elif others_wait:
            self._stood += seconds
        return self._stood


class SlowReaders:
    """Chooses the streams to cancel because other requests wait for their workers. This class only decides."""

    def __init__(self, longest: float) -> None:
        """`longest` is for how many seconds other requests may wait for a stream; 0: for ever."""
        self.longest = longest
        self._looked = 0.0

    def due(self, workers: Sequence[Worker], waiting: int, now: float) -> list[Call]:
        """The calls with streams to cancel now, while `waiting` other calls wait for any worker.

        No more than help: each stream with calls behind it, and one for each call that waits for any worker, the
        longest paused first.
        """
        seconds, self._looked = min(LONGEST_TICK, now - self._looked), now
        due: list[tuple[float, Call, bool]] = []
        for worker in workers:
            behind = worker.waiting_behind > 0
            stood = worker.stream_pause.stood_still(seconds, behind or waiting > 0)
            if worker.stream_pause.call is not None and self.longest and stood > self.longest:
                due.append((stood, worker.stream_pause.call, behind))
        due.sort(key=lambda entry: -entry[0])
        return [call for position, (_, call, behind) in enumerate(due) if behind or position < waiting]
