"""A call with messages each way, as what answers it sees it: see `grpc_conversation.RpcStream`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from panglot.web.grpc.received import ReceivedMessage
from panglot.web.grpc.statuses import DEADLINE_EXCEEDED, INTERNAL, RpcError

if TYPE_CHECKING:
    from panglot.web.http2.stream import CallStream

log = logging.getLogger("panglot.web")
BLUNDER = "the server itself failed on this call; its log says why"
LATE = "the deadline of the call has passed"


class Task:
    """What answers a call besides the loop: until it is done, its client leaves, or its deadline passes."""

    def __init__(self, stream: CallStream, work: Coroutine[Any, Any, bytes | None]) -> None:
        self.stream = stream
        self._work: Coroutine[Any, Any, bytes | None] | None = work
        """What has not begun yet."""
        loop = asyncio.get_running_loop()
        seconds = stream.head.seconds
        self._timer = loop.call_later(seconds, self._expire) if seconds is not None else None
        self._task = loop.create_task(self._run(work))

    async def _run(self, work: Coroutine[Any, Any, bytes | None]) -> None:
        self._work = None
        stream, calls = self.stream, self.stream.calls
        try:
            answer = await work
            if not stream.is_open:
                return
            if answer is not None:
                calls.answered(stream, answer)
            else:
                calls.complete(stream)
        except RpcError as error:
            calls.refuse(stream, error.code, error.message)
        except Exception:
            log.exception("the server itself failed on a call of %s", stream.head.path[:200])
            calls.refuse(stream, INTERNAL, BLUNDER)

    def _expire(self) -> None:
        self.stream.calls.refuse(self.stream, DEADLINE_EXCEEDED, LATE)

    def cancel(self) -> None:
        """Stop, because the call is over. What answers it may itself be what ends it."""
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not asyncio.current_task():
            self._task.cancel()
        if self._work is not None:
            self._work.close()


class Talk:
    """The messages of a call, each way. Those that come are its inbox's."""

    def __init__(self, stream: CallStream) -> None:
        self.stream = stream
        self._news = asyncio.Event()

    def wake(self) -> None:
        self._news.set()

    async def next(self) -> ReceivedMessage | None:
        """The next message, once it has come whole; None after the last. Raises RpcError."""
        stream = self.stream
        while True:
            message = stream.inbox.take()
            if message is not None:
                stream.calls.give_credit(stream)
                return message
            if stream.ended:
                return None
            await self._wait()

    async def _wait(self) -> None:
        # Both who reads and who writes may wait here, so what wakes them tells neither what has happened.
        self._news.clear()
        await self._news.wait()

    async def write(self, message: bytes) -> None:
        """Send a message, and wait until it has left."""
        stream = self.stream
        if not stream.is_open:
            return
        stream.calls.outflow.send(stream, message)
        while stream.pending and stream.is_open:
            await self._wait()
