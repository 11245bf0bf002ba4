"""Which front gets the next connection."""

from __future__ import annotations

from collections.abc import Sequence

from panglot.fronts.board import ACCEPTING, BEAT, GIVEN, READY, BoardRow

SILENT_MS = 1000
"""A front whose loop has not turned for so many milliseconds gets no connection while another front can take it."""


def by_preference(rows: Sequence[BoardRow], now_ms: int) -> list[int]:
    """The fronts that can take a connection, by their index, the best first.

    Fronts that move come before silent ones, and ready fronts before those that load. Among equals, the front with the
    fewest connections is the best, then the one that was given the fewest: short connections go round.
    """
    takers = [index for index, row in enumerate(rows) if row[ACCEPTING]]
    return sorted(takers, key=lambda index: _rank(rows[index], now_ms))


def _rank(row: BoardRow, now_ms: int) -> tuple[bool, bool, int, int]:
    silent = now_ms - row[BEAT] > SILENT_MS
    return silent, not row[READY], row.connections, row[GIVEN]
