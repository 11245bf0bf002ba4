"""How many frames a client may send besides calls: each of them spends from a budget, and each answer adds to it.

    a frame that is no data and no call       1 (PING, SETTINGS, their acknowledgements, WINDOW_UPDATE, RST_STREAM, ...)
    less than 256 bytes of data               1; each message that is completed adds 1
    headers of a call that came to nothing    1 for each 256 bytes: it was refused at once or reset; of public calls too
    SETTINGS that let many streams go on      1 more for each 32 of them

Answered calls and sent data add to the budget as much as any usual client sends beside them.
"""

from __future__ import annotations

import time

from panglot.web.http2.frames import ENHANCE_YOUR_CALM, ConnectionBroken

MOST = 1000
PER_SECOND = 50.0
"""What there is at first and at most, and what time adds."""
SMALL_DATA = 256
"""Bytes of a frame of data from which on it costs nothing: bytes are bounded by windows."""
HEADERS_PER_UNIT = 256


def cost_of_headers(block: bytes) -> int:
    """What a header block is worth."""
    return len(block) // HEADERS_PER_UNIT


class Budget:
    """What one connection may still spend."""

    def __init__(self) -> None:
        self.left = MOST
        self._since = time.monotonic()

    def spend(self, cost: int = 1) -> None:
        """Pay for a frame that is no call. Raises ConnectionBroken when there were too many."""
        self.left -= cost
        # The clock is read only when nothing is left: this runs for nearly every frame.
        if self.left < 0:
            now = time.monotonic()
            self.left = min(MOST, self.left + int((now - self._since) * PER_SECOND))
            self._since = now
            if self.left < 0:
                raise ConnectionBroken(ENHANCE_YOUR_CALM, "too many frames that ask nothing")

    def earn(self, more: int = 1) -> None:
        """Add to the budget, because a call was answered or data flowed."""
        left = self.left + more
        self.left = left if left < MOST else MOST
