"""The calls of one connection, from their headers to their end."""

from __future__ import annotations

import contextlib
import logging
import time
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

from panglot.web.contract import PUBLIC
from panglot.web.front import Front
from panglot.web.grpc_call import Sent, begin
from panglot.web.grpc_encoding import WINDOWS, plain
from panglot.web.grpc_services import Services
from panglot.web.grpc_statuses import (
    INTERNAL,
    INVALID_ARGUMENT,
    RESOURCE_EXHAUSTED,
    UNAVAILABLE,
    UNIMPLEMENTED,
    RpcError,
)
from panglot.web.http2 import frames
from panglot.web.http2.answers import ending, no_grpc
from panglot.web.http2.call_head import CallHead
from panglot.web.http2.messages import WholeMessage
from panglot.web.http2.outflow import Outflow
from panglot.web.http2.stream import ONE_MESSAGE, WINDOW, CallStream
from panglot.web.http2.talk import BLUNDER, Talk, Task
from panglot.web.v2_routes import GRPC
from panglot_worker import wire

log = logging.getLogger("panglot.web")
GRPC_TYPE = b"application/grpc"
BACKLOG = 8 << 20
"""Bytes of answers that may wait for a client to read them before further calls wait too."""
TOO_MANY = RpcError(UNAVAILABLE, "too many connections; try again later")
FORSAKEN = 1024
"""How many calls are remembered that we ended before their client did: it may not know yet."""


class NoRpc(Exception):
    """A request that is no call of gRPC, and the status of HTTP that tells so."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class Calls:
    """All calls of a connection that have no end yet."""

    def __init__(self, front: Front, services: Services, outflow: Outflow, when_idle: Callable[[], None]) -> None:
        self.front = front
        self.when_idle = when_idle
        self.services = services
        self.outflow = outflow
        self.now = self.idle_since = time.monotonic()
        """The time of the last read; and since when there has been no call."""
        self.streams: dict[int, CallStream] = {}
        self.held_back: deque[CallStream] = deque()
        """Calls that have come whole, and wait for the client to read its answers."""
        self.forsaken: deque[int] = deque(maxlen=FORSAKEN)
        self.only_public = False
        """Whether the connection is beyond the limit, and may only ask for public calls."""
        self.turned_away = False
        """Whether it asked for another."""

    # Beginning

    def open(self, number: int, head: CallHead, ended: bool) -> None:
        """Begin a call whose headers have come, or refuse it."""
        try:
            self._check(head)
            service = self.services.find(head.path, head.authorization)
            if self.only_public and service.access != PUBLIC:
                self.turned_away = True
                raise TOO_MANY
        except RpcError as error:
            self._refuse_unopened(number, ending(number, error.code, error.message, False), ended)
            return
        except NoRpc as error:
            self._refuse_unopened(number, no_grpc(number, error.status), ended)
            return
        stream = self.streams[number] = CallStream(self, number, head, service, self.now)
        if service.hold is not None:
            stream.talk = Talk(stream)
            stream.task = Task(stream, service.hold(stream.talk))
        if ended:
            self.ended(stream)

    def _check(self, head: CallHead) -> None:
        if head.too_large:
            raise RpcError(RESOURCE_EXHAUSTED, "the headers of the call are too large")
        if head.method != b"POST":
            raise NoRpc(405)
        if not head.content_type.startswith(GRPC_TYPE):
            raise NoRpc(415)
        if head.bad_timeout:
            raise RpcError(INVALID_ARGUMENT, "grpc-timeout is no time such as 500m")
        if head.encoding != b"identity" and head.encoding not in WINDOWS:
            name = head.encoding[:40].decode("latin-1")
            raise RpcError(UNIMPLEMENTED, f"grpc-encoding {name!r} is not read here; gzip, deflate and identity are")

    def _refuse_unopened(self, number: int, answer: bytes, ended: bool) -> None:
        self.outflow.write(answer)
        if not ended:
            self.outflow.write(frames.reset(number, frames.NO_ERROR))
            self.forsaken.append(number)

    def feed(self, stream: CallStream, data: wire.Buffer) -> None:
        """Take in bytes of a call's messages."""
        stream.last = self.now
        if not stream.reader.is_within:
            stream.since = self.now
        try:
            stream.reader.feed(data)
        except RpcError as error:
            self.refuse(stream, error.code, error.message)

    def give_credit(self, stream: CallStream) -> None:
        """Let the client send more, unless it is ahead of what answers it."""
        waits = stream.talk is not None and stream.talk.unread
        if stream.owed >= WINDOW // 4 and not stream.ended and not waits and stream.is_open:
            self.outflow.write(frames.window_update(stream.number, stream.owed))
            stream.credit += stream.owed
            stream.owed = 0

    def ended(self, stream: CallStream) -> None:
        """Take in that a client has said all, and answer a call that has one message."""
        stream.ended = True
        if stream.talk is not None:
            stream.talk.wake()
        elif stream.reader.is_within or stream.message is None:
            self.refuse(stream, ONE_MESSAGE.code, ONE_MESSAGE.message)
        elif self.is_full:
            self.held_back.append(stream)
        else:
            self._begin(stream)

    @property
    def is_full(self) -> bool:
        """Whether so much waits to be read that nothing more is run for this client."""
        return self.outflow.backlog > BACKLOG or self.outflow.paused

    def go_on(self) -> None:
        """Run the calls that waited for the client to read."""
        while self.held_back and not self.is_full:
            stream = self.held_back.popleft()
            if stream.is_open:
                self._begin(stream)

    def _begin(self, stream: CallStream) -> None:
        """Answer a call whose only message has come."""
        message = stream.let_go()
        try:
            if stream.service.answer is None:
                self._infer(stream, message)
            else:
                self._answer(stream, stream.service.answer(plain(self._encoding(stream, message), message.body)))
        except RpcError as error:
            self.refuse(stream, error.code, error.message)
        except Exception:
            log.exception("the server itself failed on a call of %s", stream.head.path[:200])
            self.refuse(stream, INTERNAL, BLUNDER)

    def _infer(self, stream: CallStream, message: WholeMessage) -> None:
        head = stream.head
        seconds = None if head.seconds is None else head.seconds - (self.now - stream.began)
        encoding = self._encoding(stream, message)
        sent = Sent(GRPC, message.body, seconds, head.request_id, head.trace, encoding, message.landing)
        call = begin(self.front, sent, stream.told)
        if not stream.is_answered:
            stream.call = call

    def _encoding(self, stream: CallStream, message: WholeMessage) -> bytes:
        return stream.head.encoding if message.packed else b""

    def _answer(self, stream: CallStream, answer: bytes | Coroutine[Any, Any, bytes]) -> None:
        if isinstance(answer, bytes):
            self.answered(stream, answer)
        else:
            stream.task = Task(stream, answer)

    # Ending

    def answered(self, stream: CallStream, body: wire.Buffer) -> None:
        """Send the only message of an answer."""
        stream.is_answered = True
        if self.outflow.answer(stream, body):
            self.finished(stream)

    def complete(self, stream: CallStream) -> None:
        """End an answer whose messages have been sent."""
        stream.is_answered = True
        if self.outflow.end(stream, 0, ""):
            self.finished(stream)

    def refuse(self, stream: CallStream, code: int, sentence: str) -> None:
        """End a call with a status and a sentence, in place of what its answer still lacks."""
        if not stream.is_open or stream.last_words:
            return
        stream.is_answered = True
        stream.give_up()
        if self.outflow.end(stream, code, sentence):
            self.finished(stream)

    def finished(self, stream: CallStream) -> None:
        """Forget a call whose answer has left."""
        if not stream.ended:
            # RFC 9113, 8.1: what the client still wants to send is not needed.
            self.reset(stream, frames.NO_ERROR)
        else:
            self.close(stream)
        self.outflow.budget.earn()

    def reset(self, stream: CallStream, code: int) -> None:
        """Break a call off, or tell that nothing more of it is needed."""
        self.outflow.write(frames.reset(stream.number, code))
        self.forsaken.append(stream.number)
        self.close(stream)

    def close(self, stream: CallStream) -> None:
        """Forget a call, whatever becomes of it."""
        if not stream.is_open:
            return
        stream.is_open = False
        del self.streams[stream.number]
        stream.give_up()
        self.outflow.forget(stream)
        if self.held_back:
            self.outflow.loop.call_soon(self.go_on)
        if not self.streams:
            self.idle_since = time.monotonic()
            self.when_idle()

    def said_all(self, number: int) -> None:
        """Take in that a client has said all on a call that we ended before: it may say nothing more."""
        with contextlib.suppress(ValueError):
            self.forsaken.remove(number)

    def close_all(self) -> None:
        self.held_back.clear()
        for stream in list(self.streams.values()):
            self.close(stream)

    def unanswered(self) -> int:
        """Calls that have come, or begun to come, and have no answer yet."""
        return sum(not stream.is_listening for stream in self.streams.values())
