"""The quota of one front of several: the limits are for the whole server, and the board has the use of each front."""

from __future__ import annotations

from collections.abc import Sequence

from panglot.fronts.board import CLOSED, MEMORY, SPOOLED, BoardRow
from panglot.settings import Settings
from panglot.web.limits.quota import CountedConnection, Quota


class MemberQuota(Quota):
    """Counts bytes on the board, and counts out there the connections that end.

    It looks at the bytes of other fronts only beyond its own share. Two fronts that take bytes in the same moment may
    together exceed the limit by one body each.
    """

    def __init__(self, settings: Settings, row: BoardRow, rows: Sequence[BoardRow]) -> None:
        self._row = row
        self._rows = rows
        # For every request. The way through the row costs several times as much.
        self._cells, self._memory = row.cells, row.start + MEMORY
        super().__init__(settings)
        self.fronts = len(rows)
        self._share = self.most_for_large // len(rows)

    # `used` and `spooled` are cells of the board, so the other fronts see every change of them.

    @property
    def used(self) -> int:
        return self._cells[self._memory]

    @used.setter
    def used(self, used: int) -> None:
        self._cells[self._memory] = used

    def used_by_all(self) -> int:
        return sum(row[MEMORY] for row in self._rows)

    @property
    def spooled(self) -> int:
        return self._row[SPOOLED]

    @spooled.setter
    def spooled(self, spooled: int) -> None:
        self._row[SPOOLED] = spooled

    def spooled_by_all(self) -> int:
        return sum(row[SPOOLED] for row in self._rows)

    def take(self, size: int, total: int) -> bool:
        """As `Quota.take`, with what all fronts use."""
        if total > self.small and total > self.largest_body:
            return False
        cells, memory = self._cells, self._memory
        used = cells[memory] + size
        if used > self._share:
            used_by_all = self.used_by_all() + size
            if used_by_all > (self.most if total <= self.small else self.most_for_large):
                return False
        cells[memory] = used
        return True

    def fits(self, size: int) -> bool:
        return self.used_by_all() + size <= (self.most if size <= self.small else self.most_for_large)

    def remove(self, connection: CountedConnection) -> None:
        super().remove(connection)
        self._row[CLOSED] += 1
