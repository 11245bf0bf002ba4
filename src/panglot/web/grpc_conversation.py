"""ModelStreamInfer: many inferences on one call, answered as they are done, some of them in parts."""

from __future__ import annotations

import asyncio
from typing import Any

from panglot.web.front import Front
from panglot.web.grpc_call import RpcCall, Sent, begin
from panglot.web.grpc_messages import streamed
from panglot.web.grpc_statuses import RpcError
from panglot.web.v2_routes import STREAM

MOST_OPEN = 64
"""Inferences of one conversation at once; those behind are not read until one is answered."""
BACKLOG = 8 * 1024 * 1024
"""Bytes of answers that may wait for a client to read them."""
TOO_SLOW = "this client reads its answers too slowly"


class Conversation:
    """One call of ModelStreamInfer."""

    def __init__(self, front: Front, everywhere: set[RpcCall], context: Any) -> None:
        self.front = front
        self.everywhere = everywhere
        """The open calls of the whole server."""
        self.context = context
        self.mine: set[RpcCall] = set()
        self.room = asyncio.Semaphore(MOST_OPEN)
        self.messages: list[bytes] = []
        self.waiting = 0
        self.opened = self.read_all = self.too_slow = False
        self.news = asyncio.Event()
        self.pending = 0
        """Inferences that have come and are not answered."""

    async def hold(self, requests: Any) -> None:
        """Answer all that comes, until the client says that nothing more will and everything is answered."""
        reading = asyncio.ensure_future(self._read(requests))
        try:
            while not (self.read_all and not self.pending and not self.messages):
                await self.news.wait()
                self.news.clear()
                if self.too_slow:
                    self.messages = [streamed(8, TOO_SLOW, b"")]
                    self.read_all, self.pending = True, 0
                await self._write()
            await reading
        finally:
            reading.cancel()
            for call in list(self.mine):
                call.cancel()
                self._over(call)

    async def _write(self) -> None:
        while self.messages:
            message = self.messages.pop(0)
            await self.context.write(message)
            self.waiting -= len(message)

    async def _read(self, requests: Any) -> None:
        """Begin what the client asks for, as far as there is room."""
        try:
            async for body in requests:
                await self.room.acquire()
                self.pending += 1
                self._begin(body)
        finally:
            self.read_all = True
            self.news.set()

    def _begin(self, body: bytes) -> None:
        calls: list[RpcCall] = []

        def told(code: int, sentence: str, message: Any, more: bool) -> None:
            # The end of an answer in parts is an empty message, which clients need not see.
            if code or len(message):
                self._say(streamed(code, sentence, message))
            if not more:
                self._ended(calls)

        try:
            call = begin(self.front, Sent(STREAM, body), told)
        except RpcError as error:
            told(error.code, error.message, b"", False)
            return
        if not calls:
            calls.append(call)
            if call.size:
                self.mine.add(call)
                self.everywhere.add(call)

    def _say(self, message: bytes) -> None:
        self.messages.append(message)
        self.waiting += len(message)
        self.too_slow = self.too_slow or self.waiting > BACKLOG
        self.news.set()

    def _ended(self, calls: list[RpcCall]) -> None:
        self.pending -= 1
        self.room.release()
        for call in calls:
            self._over(call)
        self.news.set()

    def _over(self, call: RpcCall) -> None:
        self.mine.discard(call)
        self.everywhere.discard(call)
