"""Whether the front itself limits a server: it fills its core while workers have nothing to do."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

from panglot.machine.front_count import advised

SECONDS = 60
"""For how long this must be so before the log and the page tell it."""
BUSY = 0.9
"""Share of a core from which a front counts as full."""


class FrontLoad:
    """Looks at one front once a second."""

    def __init__(self) -> None:
        self.title = "the front"
        self.fronts = 1
        """How many the server has."""
        self._busy: deque[float] = deque(maxlen=SECONDS)
        self._idle: deque[bool] = deque(maxlen=SECONDS)

    def look(self, costs: Mapping[int, tuple[float, int]], workers: Iterable[Mapping[str, Any]]) -> None:
        """Note what a second was like: the cost of each process by its pid, and the workers as pages show them."""
        self._busy.append(costs.get(os.getpid(), (0.0, 0))[0])
        self._idle.append(any(worker["state"] == "ready" and not worker["in_flight"] for worker in workers))

    def advice(self) -> str:
        """What to do, in a sentence; empty while the front does not limit the server, or nothing can be done."""
        # A worker may be at work in the very moment of a look: most looks count, not all.
        if len(self._busy) < SECONDS or min(self._busy) < BUSY or 2 * sum(self._idle) < SECONDS:
            return ""
        more = advised(self.fronts)
        busy = sum(self._busy) / SECONDS
        return (
            f"{self.title} is at {busy * 100:.0f} % of a core while workers are idle: try --fronts {more}"
            if more
            else ""
        )
