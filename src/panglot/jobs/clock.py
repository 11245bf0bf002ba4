"""The clock by which jobs wait, expire and are removed."""

from __future__ import annotations

import time


class SteadyClock:
    """Seconds since 1970 that never go back while the server lives.

    If the machine's clock is set back, this clock goes on, so that nothing is due later. If it is set forward, this
    clock follows. After a restart it is the machine's clock again: jobs may then be due later, and none is lost.
    """

    def __init__(self) -> None:
        self._ahead = time.time() - time.monotonic()

    def now(self) -> float:
        self._ahead = max(self._ahead, time.time() - time.monotonic())
        return time.monotonic() + self._ahead
