"""What each front has counted so far, in memory that outlives it: its successor goes on from there."""

from __future__ import annotations

import mmap

LARGEST = 1 << 20
"""Bytes of the counters of one front. Longer ones are not saved: they begin anew after a death."""


class SavedCounters:
    """Made before the fronts are forked. Each front writes its own part, and its successor reads that part.

    Every part has two halves. A front writes the half that is not valid, then says by one store that it is: a front
    that is killed while it writes leaves the counters of the time before.
    """

    def __init__(self, fronts: int) -> None:
        # Sparse: memory is taken by what is written.
        self._memory = mmap.mmap(-1, fronts * 2 * LARGEST)
        self._state_memory = mmap.mmap(-1, mmap.PAGESIZE * (1 + fronts * 8 // mmap.PAGESIZE))
        self._states = memoryview(self._state_memory).cast("q")
        """Of each front: twice the length of what is valid, plus the half it is in. 0: nothing."""

    def save(self, front: int, text: str) -> None:
        """Save the counters of a front, in place of those it saved before."""
        data = text.encode()
        if len(data) > LARGEST:
            return
        half = 1 - self._states[front] % 2
        start = (2 * front + half) * LARGEST
        self._memory[start : start + len(data)] = data
        self._states[front] = 2 * len(data) + half

    def read(self, front: int) -> str:
        """What was saved last; empty when nothing was."""
        length, half = divmod(self._states[front], 2)
        start = (2 * front + half) * LARGEST
        return self._memory[start : start + length].decode()
