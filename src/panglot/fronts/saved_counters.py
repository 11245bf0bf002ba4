"""The counters of each front, in memory that outlives the front: its successor goes on from there."""

from __future__ import annotations

import mmap

LARGEST = 1 << 20
"""Bytes of the counters of one front. Longer texts are not saved: the counters begin at 0 after a death."""


class SavedCounters:
    """Made before the fronts are forked. Each front writes its own part, and its successor reads that part.

    Every part has two halves. A front writes the half that is not valid, then makes it the valid half by one store. A
    front that is killed while it writes leaves the counters of its last save.
    """

    def __init__(self, fronts: int) -> None:
        # Most of it is never written, and the system gives memory only for pages that are used.
        self._memory = mmap.mmap(-1, fronts * 2 * LARGEST)
        self._state_memory = mmap.mmap(-1, mmap.PAGESIZE * (1 + fronts * 8 // mmap.PAGESIZE))
        self._states = memoryview(self._state_memory).cast("q")
        """By front: twice the length of the valid text, plus the number of its half. 0: nothing was saved."""

    def save(self, front: int, text: str) -> None:
        """Save the counters of a front instead of the counters that it saved before."""
        data = text.encode()
        if len(data) > LARGEST:
            return
        half = 1 - self._states[front] % 2
        start = (2 * front + half) * LARGEST
        self._memory[start : start + len(data)] = data
        self._states[front] = 2 * len(data) + half

    def read(self, front: int) -> str:
        """The counters that were saved last; empty when none were."""
        length, half = divmod(self._states[front], 2)
        start = (2 * front + half) * LARGEST
        return self._memory[start : start + length].decode()
