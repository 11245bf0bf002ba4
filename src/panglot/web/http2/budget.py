"""How much a client may send that asks nothing: pings, settings, resets, empty frames."""

from __future__ import annotations

import time

from panglot.web.http2.frames import ENHANCE_YOUR_CALM, ConnectionBroken

MOST = 1000
PER_SECOND = 50.0
"""Such frames at once, and how many more as time passes. Calls that are answered and data that flows add their own."""


class Budget:
    """What is left of them for one connection."""

    def __init__(self) -> None:
        self.left = MOST
        self._since = time.monotonic()

    def spend(self) -> None:
        """Take in a frame that asks nothing. Raises ConnectionBroken when there were too many."""
        self.left -= 1
        if self.left < 0:
            now = time.monotonic()
            self.left = min(MOST, int((now - self._since) * PER_SECOND)) - 1
            self._since = now
            if self.left < 0:
                raise ConnectionBroken(ENHANCE_YOUR_CALM, "too many frames that ask nothing")

    def earn(self) -> None:
        """Note that a call was answered, or data flowed."""
        if self.left < MOST:
            self.left += 1
