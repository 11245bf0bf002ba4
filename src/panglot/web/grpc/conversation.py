"""ModelStreamInfer: many inferences on one call, answered as they are done, some of them in parts."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any, Protocol

from panglot.web.front import Front
from panglot.web.grpc.call import Asked, RpcCall, begin
from panglot.web.grpc.messages import stream_failure, streamed
from panglot.web.grpc.received import ReceivedMessage
from panglot.web.grpc.statuses import RESOURCE_EXHAUSTED, Refusal, RpcError
from panglot.web.v2.routes import STREAM

MOST_OPEN = 64
"""Inferences of one conversation at once, answers that wait to be read counted too; those behind are not read."""
BACKLOG = 8 * 1024 * 1024
"""Bytes of answers in parts that may wait for a client to read them: their worker cannot be held back."""
TOO_SLOW = Refusal(RESOURCE_EXHAUSTED, "this client reads its answers too slowly")


class RpcStream(Protocol):
    """A call with any number of messages each way, as its transport has it."""

    async def next(self) -> ReceivedMessage | None:
        """The next message, once it has come whole; None after the last. Raises RpcError where what comes is none.

        The stream owns it, until the next is asked for.
        """

    async def write(self, message: bytes) -> None:
        """Send a message to the client, and wait while it takes no more."""


class Conversation:
    """One call of ModelStreamInfer."""

    def __init__(self, front: Front, everywhere: set[RpcCall], stream: RpcStream) -> None:
        self.front = front
        self.everywhere = everywhere
        """The open calls of the whole server."""
        self.stream = stream
        self.mine: set[RpcCall] = set()
        self.slots = asyncio.Semaphore(MOST_OPEN)
        self.messages: deque[tuple[bytes, bool]] = deque()
        """What is to be written, and whether an inference ends with it."""
        self.waiting = 0
        """Bytes of these."""
        self.pending = 0
        """Inferences that have come, and whose end is not written."""
        self.read_all = False
        self.news = asyncio.Event()
        self.too_slow = asyncio.Event()

    async def hold(self) -> None:
        """Answer all that comes, until nothing more will and everything is answered. Raises RpcError."""
        tasks = [asyncio.ensure_future(work) for work in (self._write(), self._read(), self.too_slow.wait())]
        writing, reading, cut = tasks
        try:
            await asyncio.wait({writing, cut}, return_when=asyncio.FIRST_COMPLETED)
            if not writing.done():
                raise TOO_SLOW.error()
            await writing
            await reading
        finally:
            for task in tasks:
                task.cancel()
            for call in list(self.mine):
                call.cancel()
                self._over(call)

    async def _write(self) -> None:
        while not (self.read_all and not self.pending):
            while self.messages:
                message, ends = self.messages.popleft()
                if message:
                    await self.stream.write(message)
                    self.waiting -= len(message)
                if ends:
                    self.pending -= 1
                    self.slots.release()
            if not (self.read_all and not self.pending):
                await self.news.wait()
                self.news.clear()

    async def _read(self) -> None:
        """Begin what the client asks for, as far as there is room."""
        try:
            while True:
                # Room first: between the arrival of a message and its beginning nothing is awaited.
                await self.slots.acquire()
                message = await self.stream.next()
                if message is None:
                    return
                self.pending += 1
                self._begin(message)
        finally:
            self.read_all = True
            self.news.set()

    def _begin(self, message: ReceivedMessage) -> None:
        calls: list[RpcCall] = []
        known = message.request_id

        def told(code: int, sentence: str, message: Any, more: bool) -> None:
            # The end of an answer in parts is an empty message, which clients need not see.
            said = stream_failure(sentence, known) if code else streamed(message) if len(message) else b""
            self._say(said, more)
            if not more:
                for call in calls:
                    self._over(call)

        try:
            call = begin(self.front, Asked(STREAM), message, told)
        except RpcError as error:
            told(error.code, error.message, b"", False)
            return
        if not call.is_over:
            calls.append(call)
            self.mine.add(call)
            self.everywhere.add(call)

    def _say(self, message: bytes, more: bool) -> None:
        self.messages.append((message, not more))
        self.waiting += len(message)
        if more and self.waiting > BACKLOG:
            self.too_slow.set()
        self.news.set()

    def _over(self, call: RpcCall) -> None:
        self.mine.discard(call)
        self.everywhere.discard(call)
