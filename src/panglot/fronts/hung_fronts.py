"""Fronts that do not respond: the parent says so in the log, and says when they respond again."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from panglot.fronts.board import BEAT
from panglot.fronts.front_process import FrontProcess
from panglot.fronts.timers import Timers

HUNG = 10.0
"""Seconds without a turn of its loop after which a front is said not to respond."""
EVERY = 1.0
"""Seconds between two looks."""

log = logging.getLogger("panglot")


class HungFronts:
    """Looks at the beats of all fronts. A front that hangs is not killed: it may be at work that takes long."""

    def __init__(self, fronts: Sequence[FrontProcess], timers: Timers) -> None:
        self._fronts = fronts
        self._timers = timers
        self._told: dict[int, int] = {}
        """The last beats of the fronts that the log tells of, by pid."""
        self._looked = timers.now()

    def look(self) -> None:
        """Look now, and again each second."""
        now = self._timers.now()
        # If this process did not run either, its own pause is no reason to blame a front.
        if now - self._looked < 3 * EVERY:
            for front in self._fronts:
                self._look_at(front, now)
        self._looked = now
        self._timers.after(EVERY, self.look)

    def _look_at(self, front: FrontProcess, now: float) -> None:
        beat, former = front.row[BEAT], self._told.get(front.pid)
        # 0: its loop has not begun.
        if not front.pid or not beat:
            return
        if former is not None and beat != former:
            log.info("front %d responds again, after %.0f s", front.index, (beat - former) / 1000)
            del self._told[front.pid]
        elif former is None and now - beat / 1000 >= HUNG:
            log.error(
                "front %d (pid %d) does not respond for %.0f s: its requests wait, new connections go to other fronts",
                front.index, front.pid, now - beat / 1000,
            )  # fmt: skip
            self._told[front.pid] = beat
