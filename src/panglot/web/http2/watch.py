"""A call of Health/Watch: it only listens, and gives way when other public calls need its quota."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from panglot.web.grpc.statuses import DEADLINE_EXCEEDED
from panglot.web.grpc.watch import Watches
from panglot.web.http2.answer_task import LATE

if TYPE_CHECKING:
    from panglot.web.http2.stream import CallStream


class Watch:
    """Tells the client of one call whether a service is served, until the call ends."""

    def __init__(self, stream: CallStream, watches: Watches, service: str) -> None:
        self.service = service
        self._stream = stream
        self._watches = watches
        self._last = b""
        seconds = stream.head.seconds
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(seconds, self._expire) if seconds is not None else None

    def begin(self) -> None:
        self._watches.add(self)

    def tell(self, status: bytes) -> None:
        """Send a status, unless the client has it already, or has not read the one before yet."""
        stream = self._stream
        # A status that is skipped here is not lost: `Watches` tells the present one again and again.
        if status != self._last and not stream.pending and stream.is_open:
            self._last = status
            stream.calls.outflow.send(stream, status)

    def _expire(self) -> None:
        self._stream.calls.refuse(self._stream, DEADLINE_EXCEEDED, LATE)

    def cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._watches.remove(self)
