"""Which front gets the next connection."""

from __future__ import annotations

from collections.abc import Sequence

from panglot.fronts.board import ACCEPTING, BEAT, CLOSED, GIVEN, READY, BoardRow

SILENT_MS = 1000
"""A front whose loop has not turned for so many milliseconds gets no connection while another front can take it."""


def by_preference(rows: Sequence[BoardRow], now_ms: int) -> list[int]:
    """The fronts that can take a connection, by their index, the best first.

    Fronts that move come before silent ones, and ready fronts before those that load. Among equals, the front with the
    fewest connections is the best, then the one that was given the fewest: short connections go round.
    """
    takers: list[tuple[bool, bool, int, int, int]] = []
    for index, row in enumerate(rows):
        cells, start = row.cells, row.start
        if cells[start + ACCEPTING]:
            silent, loads = now_ms - cells[start + BEAT] > SILENT_MS, not cells[start + READY]
            given = cells[start + GIVEN]
            takers.append((silent, loads, given - cells[start + CLOSED], given, index))
    takers.sort()
    return [taker[-1] for taker in takers]
