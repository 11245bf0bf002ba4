"""Whether clients read their streams as fast as responses come. All of it runs on the thread of the event loop."""

from __future__ import annotations

import asyncio
from typing import Dict, Optional

from panglot_worker.line.port import Port


class Readers:
    """The clients of the streams of this worker."""

    def __init__(self, port: Port, longest: float) -> None:
        """`longest` is for how many seconds a response waits at most for its client."""
        self._longest = longest
        self._open: "Dict[int, Optional[asyncio.Future[None]]]" = {}
        """By item: done once its client has read; None where it reads fast enough."""
        port.on_pace = self._on_pace

    def begin(self, item: int) -> None:
        """Listen for how fast the client of an item reads, until `end`."""
        self._open[item] = None

    def end(self, item: int) -> None:
        self._open.pop(item, None)

    async def wait(self, item: int) -> None:
        """Wait until the client of an item has read what is on its way to it."""
        read = self._open.get(item)
        if read is not None:
            await asyncio.wait([read], timeout=self._longest)

    def _on_pace(self, item: int, hold: bool) -> None:
        # The front may have sent this before it had the end of the stream.
        if item not in self._open:
            return
        before, self._open[item] = self._open[item], None
        if hold:
            self._open[item] = asyncio.get_running_loop().create_future()
        if before is not None:
            before.set_result(None)
