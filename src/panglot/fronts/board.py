"""Figures that the parent and all fronts share without messages, in memory with one row for each front."""

from __future__ import annotations

import mmap

from panglot.fronts.limits.shared_keys import SharedKeys
from panglot.fronts.saved_counters import SavedCounters
from panglot.fronts.sleep.board import SleepBoard

GIVEN, CLOSED, ACCEPTING, READY, BEAT, LOAD, MEMORY, LENT, RESTARTS, BORROWED, JOBS, LOST_LINES, SPOOLED = range(13)
"""The cells of a front's row.

GIVEN: connections that the front was given. Only the parent writes GIVEN, RESTARTS and LOST_LINES, only the front all
others.
CLOSED: connections among these that have ended.
ACCEPTING: 1 while the front takes connections.
READY: 1 while every model of the front has been loaded.
BEAT: when the loop of the front last turned, in milliseconds of the monotonic clock.
LOAD: thousandths of its time that the front was at work.
MEMORY: bytes that its requests use.
LENT: calls that this front, and fronts that had its index before, have lent to other fronts so far.
RESTARTS: how often a front of this index was forked because the one before had died.
BORROWED: calls of other fronts that it, and the fronts before it, have run so far.
JOBS: 1 once the server has had a job. Only the front that stores jobs uses it.
LOST_LINES: lines of the log that the parent dropped because nobody read them, of all fronts; in the first row alone.
SPOOLED: bytes of request bodies that it has on disk.
"""
FREE, WAITING, QUEUED, QUEUED_BYTES, JOBS_FREE, JOBS_CAPACITY, LENDS, BODIES = range(8)
"""The cells of a model's row in a front.

FREE: calls that could begin there at once. The front writes it, and each front that lends to it lowers it. When two
writes meet and one is lost, a call waits in another queue than it would have.
WAITING: calls that wait there, and are worth lending.
QUEUED, QUEUED_BYTES: all calls that wait there, and their bytes.
JOBS_FREE: jobs that could begin there, or wait there for credit. Lowered as FREE is.
JOBS_CAPACITY: jobs that it can have at a time: jobs that run, and jobs that wait in workers to follow them.
LENDS: 1 while the front may lend calls of the model.
BODIES: bytes that its requests use there, of the share of request memory that the model has.
"""
CELLS = 16
"""Numbers of 64 bits in a row: two cache lines, so that fronts do not slow each other down."""


class Board:
    """Made before the fronts are forked. The figures of other processes may be a moment old.

    No lock guards it: every cell but FREE and JOBS_FREE has one writer, and nobody sees half of a store of 64 aligned
    bits. So it carries hints and sums: each decision by it may be wrong by a few calls for a moment.
    """

    def __init__(self, fronts: int, models: int = 1) -> None:
        self.fronts = fronts
        self.models = models
        self._memory = mmap.mmap(-1, 8 * CELLS * fronts * (1 + models))
        self.cells = memoryview(self._memory).cast("q")
        self.saved = SavedCounters(fronts)
        self.keys: SharedKeys | None = None
        """The limits of keys, where there are keys; set before the fronts are forked."""
        self.sleep = SleepBoard(fronts, models)

    def row(self, front: int) -> BoardRow:
        return BoardRow(self.cells, CELLS * front)

    def model_row(self, front: int, slot: int) -> BoardRow:
        """The row of one model in a front; its slot is its position in the plan."""
        return BoardRow(self.cells, CELLS * (self.fronts * (1 + slot) + front))

    def clear(self, front: int) -> None:
        """Set the rows of a front to 0 for its successor, but for the counters of all fronts of this index."""
        for row in (self.row(front), *(self.model_row(front, slot) for slot in range(self.models))):
            for cell in range(CELLS):
                if cell not in (LENT, RESTARTS, BORROWED, LOST_LINES):
                    row[cell] = 0
        if self.keys is not None:
            self.keys.clear(front)
        self.sleep.clear(front)

    def rows(self) -> list[BoardRow]:
        return [self.row(front) for front in range(self.fronts)]


class BoardRow:
    """The figures of one front."""

    __slots__ = ("cells", "start")

    def __init__(self, cells: memoryview[int], start: int) -> None:
        self.cells = cells
        self.start = start
        """Where the row begins among the cells of the board."""

    def __getitem__(self, cell: int) -> int:
        return self.cells[self.start + cell]

    def __setitem__(self, cell: int, value: int) -> None:
        self.cells[self.start + cell] = value

    @property
    def connections(self) -> int:
        """Connections that the front was given and that have not ended, also while they are on their way to it."""
        return self[GIVEN] - self[CLOSED]
