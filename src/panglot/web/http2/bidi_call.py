"""A call with many messages each way, as the service that answers it sees it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from panglot.web.access.keys import KeyHolder
from panglot.web.grpc.received_message import ReceivedMessage

if TYPE_CHECKING:
    from panglot.web.http2.stream import CallStream


class BidiCall:
    """The messages of a call, each way. Its inbox owns the messages of the client."""

    def __init__(self, stream: CallStream) -> None:
        self.stream = stream
        self._news = asyncio.Event()

    @property
    def holder(self) -> KeyHolder | None:
        """The client, where it came with a key."""
        return self.stream.holder

    @property
    def path(self) -> str:
        """The method that it calls."""
        return self.stream.head.path

    def wake(self) -> None:
        self._news.set()

    async def next(self) -> ReceivedMessage | None:
        """The next message, once it has come whole; None after the last. Raises RpcError where what comes is none.

        The inbox owns it until the next one is taken.
        """
        stream = self.stream
        while True:
            message = stream.inbox.take()
            if message is not None:
                # Only a message that is taken makes space for the next ones of the client.
                stream.calls.open_window(stream)
                return message
            if stream.ended:
                return None
            await self._wait()

    async def _wait(self) -> None:
        # The reader and the writer of the call may both wait here. One event wakes both, so each looks again.
        # Nothing is awaited between the caller's last look and this line, so no news is lost.
        self._news.clear()
        await self._news.wait()

    async def write(self, message: bytes) -> None:
        """Send a message, and wait until all of it is sent: the client takes it within its window."""
        stream = self.stream
        if not stream.is_open:
            return
        stream.calls.outflow.send(stream, message)
        while stream.pending and stream.is_open:
            await self._wait()
