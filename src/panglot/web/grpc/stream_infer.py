"""ModelStreamInfer: many inferences on one call, answered as they are done, some of them in parts."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any

from panglot.web.front import Front
from panglot.web.grpc.call import InferCall, RpcCall, begin
from panglot.web.grpc.messages import stream_failure, streamed
from panglot.web.grpc.received_message import ReceivedMessage
from panglot.web.grpc.statuses import RESOURCE_EXHAUSTED, Refusal, RpcError
from panglot.web.v2.routes import STREAM

if TYPE_CHECKING:
    from panglot.web.http2.bidi_call import BidiCall

MOST_OPEN = 64
"""Inferences of one stream at once, with those whose answers wait to be read. Further messages wait unread."""
BACKLOG = 8 * 1024 * 1024
"""Bytes of answers in parts that may wait for a client to read them, where their worker cannot be slowed down."""
HOLD_FROM = 1024 * 1024
"""Bytes that wait when workers are asked to send no more parts."""
TOO_SLOW = Refusal(RESOURCE_EXHAUSTED, "this client reads its answers too slowly")


class StreamInfer:
    """One call of ModelStreamInfer."""

    def __init__(self, front: Front, open_calls: set[RpcCall], stream: BidiCall) -> None:
        self.front = front
        self.open_calls = open_calls
        """The open calls of the whole server."""
        self.stream = stream
        self.mine: set[RpcCall] = set()
        self.slots = asyncio.Semaphore(MOST_OPEN)
        self.messages: deque[tuple[bytes, bool]] = deque()
        """Messages to write, and whether an inference ends with each."""
        self.waiting = 0
        """Bytes of these."""
        self.held: set[RpcCall] = set()
        """Those of `mine` whose workers wait for the client to read."""
        self.pending = 0
        """Inferences that have come, and whose end is not written."""
        self.read_all = False
        self.news = asyncio.Event()
        self.too_slow = asyncio.Event()

    async def run(self) -> None:
        """Answer every message, until the client has sent its last one and all are answered. Raises RpcError."""
        tasks = [asyncio.ensure_future(work) for work in (self._write(), self._read(), self.too_slow.wait())]
        writing, reading, cut = tasks
        try:
            # The reader is not in this set: its end, also by an error, lets the writer end, and is raised below.
            await asyncio.wait({writing, cut}, return_when=asyncio.FIRST_COMPLETED)
            if not writing.done():
                raise TOO_SLOW.error()
            await writing
            await reading
        finally:
            for task in tasks:
                task.cancel()
            # A list of its own, because `_forget` changes the set.
            for call in list(self.mine):
                call.cancel()
                self._forget(call)

    async def _write(self) -> None:
        while not (self.read_all and not self.pending):
            while self.messages:
                message, ends = self.messages.popleft()
                if message:
                    await self.stream.write(message)
                    self.waiting -= len(message)
                    if self.held and self.waiting < HOLD_FROM:
                        self._go_on()
                # Only now is the slot free: for a client that reads slowly no further inference is begun.
                if ends:
                    self.pending -= 1
                    self.slots.release()
            if not (self.read_all and not self.pending):
                await self.news.wait()
                self.news.clear()

    async def _read(self) -> None:
        """Begin the inferences of the client, as long as there are free slots."""
        try:
            while True:
                # The slot first: the inbox owns a message only until the next one is taken, so nothing is awaited
                # between taking it and handing its memory to the call.
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
        # Empty while `begin` runs: an answer that comes at once finds no call to forget.
        calls: list[RpcCall] = []
        known = message.request_id

        def on_answer(code: int, sentence: str, message: Any, more: bool) -> None:
            # The end of an answer in parts is an empty message, which clients need not see.
            said = stream_failure(sentence, known) if code else streamed(message) if len(message) else b""
            self._send(said, more)
            if more and self.waiting > HOLD_FROM:
                self._hold(calls)
            if not more:
                for call in calls:
                    self._forget(call)

        try:
            call = begin(
                self.front, InferCall(STREAM, holder=self.stream.holder, path=self.stream.path), message, on_answer
            )
        except RpcError as error:
            on_answer(error.code, error.message, b"", False)
            return
        if not call.is_over:
            calls.append(call)
            self.mine.add(call)
            self.open_calls.add(call)

    def _send(self, message: bytes, more: bool) -> None:
        self.messages.append((message, not more))
        self.waiting += len(message)
        # Answers in one piece are bounded by the slots. Parts come as fast as the worker makes them.
        if more and self.waiting > BACKLOG:
            self.too_slow.set()
        self.news.set()

    def _hold(self, calls: list[RpcCall]) -> None:
        """Have the worker of a call send no more parts until the client has read."""
        for call in calls:
            if call not in self.held:
                self.held.add(call)
                call.model.engine.pause_stream(call, True)

    def _go_on(self) -> None:
        held, self.held = self.held, set()
        for call in held:
            call.model.engine.pause_stream(call, False)

    def _forget(self, call: RpcCall) -> None:
        self.held.discard(call)
        self.mine.discard(call)
        self.open_calls.discard(call)
