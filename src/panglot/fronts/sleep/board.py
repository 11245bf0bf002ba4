"""Figures of models that may sleep, in memory that the parent and all fronts map."""

from __future__ import annotations

import mmap

from panglot.engine.interface import ASLEEP, WAKING
from panglot.engine.sleep.sleeper import AWAKE, NEW

CELLS = 16
"""Numbers of 64 bits in a row: two cache lines, so that fronts do not slow each other down."""
HEARD, CALLS, BUSY, DONE, SETTLED, LOADED, WORKERS, USED, USED_GPU = range(9)
"""The cells of a model in one front. Only this front writes them.

HEARD: the number of the last order to sleep or to wake that it has carried out.
CALLS: 1 while a call waits for its answer. BUSY: 1 while a worker has a call, also a cancelled one.
DONE: calls that have their answers.
SETTLED: 1 while its workers are ready, and none is being started. LOADED: 1 while every pool has a ready worker.
WORKERS: processes of workers. USED, USED_GPU: bytes that they use, plus 1; 0 is unknown.
"""
GRANTED, STARTED, LOAD, SEEN, SEEN_GPU, STATE = range(6)
"""The cells of a model that the parent writes.

GRANTED: 1 while the model owns the memory that it needs. STARTED: when its workers were last started, and LOAD: how
long a load takes, both in milliseconds. SEEN, SEEN_GPU: the most bytes that it has used, plus 1; 0 is unknown.
STATE: its state, as a position in STATES.
"""
STATES = (NEW, AWAKE, ASLEEP, WAKING)


class SleepBoard:
    """Made before the fronts are forked."""

    def __init__(self, fronts: int, slots: int) -> None:
        self._fronts = fronts
        self._slots = slots
        # Sparse: memory is taken by what is written.
        self._memory = mmap.mmap(-1, 8 * CELLS * (fronts + 1) * max(1, slots))
        self._cells = memoryview(self._memory).cast("q")

    def of_front(self, slot: int, front: int) -> memoryview:
        """The row of a model in one front."""
        start = CELLS * (slot * (self._fronts + 1) + front)
        return self._cells[start : start + CELLS]

    def of_parent(self, slot: int) -> memoryview:
        """The row of a model that the parent writes."""
        return self.of_front(slot, self._fronts)

    def clear(self, front: int) -> None:
        """Set the rows of a front to 0 for its successor."""
        for slot in range(self._slots):
            row = self.of_front(slot, front)
            for cell in range(CELLS):
                row[cell] = 0


def bytes_of(cell: int) -> int | None:
    """The bytes that a cell tells."""
    return cell - 1 if cell else None


def cell_of(count: int | None) -> int:
    """The value of a cell for so many bytes; None: unknown."""
    return 0 if count is None else count + 1
