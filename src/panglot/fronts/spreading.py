"""Which front gets the next connection."""

from __future__ import annotations

from collections.abc import Sequence

from panglot.fronts.board import ACCEPTING, BEAT, CLOSED, GIVEN, READY, BoardRow

SILENT_MS = 1000
"""Milliseconds. A front whose loop has not turned for so long gets no connection while another front can take it."""


def by_preference(rows: Sequence[BoardRow], now_ms: int) -> list[int]:
    """The fronts that can take a connection, by their index, the best first.

    Fronts whose loops turn come before silent fronts, and ready fronts before loading ones. Among equals, the front
    with the fewest connections is the best, then the front that was given the fewest: short connections go round.
    """
    takers: list[tuple[bool, bool, int, int, int]] = []
    for index, row in enumerate(rows):
        # Not by way of the row, which is slower: this runs for every connection.
        cells, start = row.cells, row.start
        if cells[start + ACCEPTING]:
            silent, loads = now_ms - cells[start + BEAT] > SILENT_MS, not cells[start + READY]
            given = cells[start + GIVEN]
            takers.append((silent, loads, given - cells[start + CLOSED], given, index))
    takers.sort()
    return [taker[-1] for taker in takers]
