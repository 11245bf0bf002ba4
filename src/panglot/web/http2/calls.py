"""The calls of one connection, from their headers to their end."""

from __future__ import annotations

import logging
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Coroutine
from typing import Any

from panglot.web.access.keys import KeyHolder
from panglot.web.access.remembered_key import RememberedKey
from panglot.web.front import Front
from panglot.web.grpc import native
from panglot.web.grpc.call import InferCall, begin
from panglot.web.grpc.encoding import WINDOWS
from panglot.web.grpc.inbox import ONE_MESSAGE
from panglot.web.grpc.received_message import ReceivedMessage
from panglot.web.grpc.services import Service, Services, watched_service
from panglot.web.grpc.statuses import (
    INTERNAL,
    INVALID_ARGUMENT,
    RESOURCE_EXHAUSTED,
    UNAVAILABLE,
    UNIMPLEMENTED,
    Refusal,
    RpcError,
)
from panglot.web.http2 import frames
from panglot.web.http2.answer_task import BLUNDER, AnswerTask
from panglot.web.http2.bidi_call import BidiCall
from panglot.web.http2.headers.answers import ending, no_grpc
from panglot.web.http2.headers.call_head import CallHead
from panglot.web.http2.outflow import Outflow
from panglot.web.http2.public_quota import MOST_OPEN, TOO_MANY_OPEN, PublicQuota
from panglot.web.http2.stream import WINDOW, CallStream
from panglot.web.http2.watch import Watch
from panglot.web.v2.routes import GRPC
from panglot_worker.line import wire

log = logging.getLogger("panglot.web")
GRPC_TYPE = b"application/grpc"
BACKLOG = 8 << 20
"""Bytes of answers that may wait for a client to read them before further calls wait too."""
TOO_MANY = Refusal(UNAVAILABLE, "too many connections; try again later")
MOST_ABANDONED = 1024
"""How many calls are remembered that we ended before their client did."""
AT_ONCE = 32
"""Calls that waited for their client, and are begun in one turn of the loop."""
PER_ANSWER = 4
"""What an answered call adds to the budget: its client has spent some to open windows, and on PINGs."""


class NoRpc(Exception):
    """A request that is no call of gRPC, and the status of HTTP that tells so."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class Calls:
    """All calls of a connection that have no end yet."""

    def __init__(
        self, front: Front, services: Services, quota: PublicQuota, outflow: Outflow, when_idle: Callable[[], None]
    ) -> None:
        self.front = front
        self.quota = quota
        self.when_idle = when_idle
        self.services = services
        self.outflow = outflow
        self.now = self.idle_since = time.monotonic()
        """The time of the last read; and since when there has been no call, or none but public ones."""
        self._key = RememberedKey(front.access)
        self._right_head: CallHead | None = None
        """The head that was last found to be in order."""
        self.streams: dict[int, CallStream] = {}
        self.public = 0
        """How many of these need no token."""
        self.deferred: deque[CallStream] = deque()
        """Calls that have come whole, and wait for the client to read its answers."""
        self._is_scheduled = False
        """Whether they are looked at in the next turn of the loop."""
        self.ended_early: OrderedDict[int, None] = OrderedDict()
        """The numbers of calls that we ended before their client did, oldest first. See `remember_ended`."""
        self.only_public = False
        """Whether the connection is beyond the limit, and may only make public calls."""
        self.turned_away = False
        """Whether it tried to make another call."""

    # Beginning

    def open(self, number: int, head: CallHead, ended: bool, cost: int) -> None:
        """Begin a call whose headers have come, or refuse it; they are worth `cost`. Raises ConnectionBroken."""
        try:
            service, holder = self._service(head)
        except RpcError as error:
            self._refuse_unopened(number, ending(number, error.code, error.message, False), ended, cost)
            return
        except NoRpc as error:
            self._refuse_unopened(number, no_grpc(number, error.status), ended, cost)
            return
        if service.is_public:
            # Anyone can make public calls, so their headers are paid for even if they are answered.
            self.outflow.budget.spend(cost)
            self.public += 1
            self.idle_since = self.now
            # The other headers are not needed, and they may be long: a public call uses little memory.
            head = CallHead(head.method, head.path, seconds=head.seconds, encoding=head.encoding)
        stream = self.streams[number] = CallStream(self, number, head, service, cost, holder)
        if service.answer_stream is not None:
            stream.bidi = BidiCall(stream)
            stream.task = AnswerTask(stream, service.answer_stream(stream.bidi))
        if ended:
            self.ended(stream)

    def _service(self, head: CallHead) -> tuple[Service, KeyHolder | None]:
        """The service that answers a call, and the client if the call has a key. Raises RpcError or NoRpc."""
        # Clients send the same head again and again, and it is remembered as one object.
        if head is not self._right_head:
            self._check(head)
            self._right_head = head
        service, holder = self.services.find(head.path, head.authorization, self._key)
        if service.is_public:
            if self.public >= MOST_OPEN:
                raise TOO_MANY_OPEN.error()
        elif self.only_public:
            self.turned_away = True
            raise TOO_MANY.error()
        return service, holder

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

    def _refuse_unopened(self, number: int, answer: bytes, ended: bool, cost: int) -> None:
        self.outflow.budget.spend(1 + cost)
        self.outflow.write(answer)
        if not ended:
            # RFC 9113, 8.1: the answer is complete, and the client need not send the rest.
            self.outflow.write(frames.reset(number, frames.NO_ERROR))
            self.remember_ended(number)

    def remember_ended(self, number: int) -> None:
        """Remember a call that we ended before its client did: what the client still sends on it is no error.

        Its frames may be on their way when our end of the stream is sent, and RFC 9113 lets us ignore them.
        """
        self.ended_early[number] = None
        if len(self.ended_early) > MOST_ABANDONED:
            self.ended_early.popitem(last=False)

    def feed(self, stream: CallStream, data: wire.Buffer) -> None:
        """Add bytes to a call's messages."""
        inbox = stream.inbox
        # The call was refused, and its end waits behind messages. Further data is dropped.
        if inbox.is_closed:
            return
        stream.last = self.now
        if not inbox.is_within:
            stream.since = self.now
        try:
            completed = inbox.feed(data)
            if completed:
                self.outflow.budget.earn(completed)
                if stream.bidi is not None:
                    stream.bidi.wake()
        except RpcError as error:
            self.refuse(stream, error.code, error.message)

    def open_window(self, stream: CallStream) -> None:
        """Let the client send more, unless messages of it still wait to be taken."""
        waits = stream.bidi is not None and stream.inbox.has_more
        if stream.owed >= WINDOW // 4 and not stream.ended and not waits and stream.is_open:
            self.outflow.write(frames.window_update(stream.number, stream.owed))
            stream.credit += stream.owed
            stream.owed = 0

    def ended(self, stream: CallStream) -> None:
        """Note that a client has sent all of a call, and answer a call with one message."""
        # First: the answer may be sent at once, and `finished` then must not reset the stream.
        stream.ended = True
        if stream.bidi is not None:
            stream.bidi.wake()
        elif stream.inbox.is_within or not stream.inbox.has_more:
            self.refuse(stream, ONE_MESSAGE.code, ONE_MESSAGE.message)
        elif self.is_full:
            # Not run yet: its answer would only join those that the client does not read.
            self.deferred.append(stream)
        else:
            self._begin(stream)

    @property
    def is_full(self) -> bool:
        """Whether the client leaves so much unread that nothing more is run for it."""
        return self.outflow.backlog > BACKLOG or self.outflow.paused

    def run_deferred(self) -> None:
        """Run the calls that waited for the client to read: some of them now, the rest in further turns of the loop."""
        self._is_scheduled = False
        for _ in range(AT_ONCE):
            if not self.deferred or self.is_full:
                return
            stream = self.deferred.popleft()
            # The client may have reset the call, or the sweep refused it, while it waited.
            if stream.is_open and not stream.is_answered:
                self._begin(stream)
        self.run_deferred_soon()

    def run_deferred_soon(self) -> None:
        if self.deferred and not self._is_scheduled:
            self._is_scheduled = True
            self.outflow.loop.call_soon(self.run_deferred)

    def _begin(self, stream: CallStream) -> None:
        """Answer a call whose only message has come."""
        try:
            message = stream.inbox.take()
            assert message is not None
            if stream.service.infers:
                self._infer(stream, message)
            elif stream.service.answer is not None:
                self._answer(stream, stream.service.answer(message.plain(), stream.holder))
            else:
                stream.watch = Watch(stream, self.services.watches, watched_service(message.plain()))
                stream.watch.begin()
        except RpcError as error:
            self.refuse(stream, error.code, error.message)
        except Exception:
            log.exception("the server itself failed on a call of %s", stream.head.path[:200])
            self.refuse(stream, INTERNAL, BLUNDER)

    def _infer(self, stream: CallStream, message: ReceivedMessage) -> None:
        head = stream.head
        # The client's deadline began with the headers; the message may have come much later.
        seconds = None if head.seconds is None else head.seconds - (self.now - stream.began)
        about, route = (
            InferCall(GRPC, seconds, head.request_id, head.trace, stream.holder, head.path),
            stream.service.native,
        )
        if route is None:
            call = begin(self.front, about, message, stream.on_answer)
        else:
            call = native.begin(self.front, route, about, message, stream.on_answer)
        # The engine may answer before `begin` returns. Then there is nothing left to cancel.
        if not stream.is_answered:
            stream.call = call

    def _answer(self, stream: CallStream, answer: bytes | Coroutine[Any, Any, bytes]) -> None:
        if isinstance(answer, bytes):
            self.answered(stream, answer)
        else:
            stream.task = AnswerTask(stream, answer)

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
        """End a call with a status and a sentence. Messages of its answer that are not sent yet are dropped."""
        # An end that waits behind its messages is final: a stream cannot have a second one.
        if not stream.is_open or stream.final_headers:
            return
        stream.is_answered = True
        # Before the end is sent, so that no part of the answer follows it.
        stream.cancel()
        if self.outflow.end(stream, code, sentence):
            self.finished(stream)

    def finished(self, stream: CallStream) -> None:
        """Forget a call whose answer is sent."""
        if not stream.ended:
            # RFC 9113, 8.1: what the client still wants to send is not needed.
            self.reset(stream, frames.NO_ERROR)
        else:
            self.close(stream)
        self.outflow.budget.earn(PER_ANSWER)

    def reset(self, stream: CallStream, code: int) -> None:
        """Break a call off, or tell that nothing more of it is needed."""
        self.outflow.write(frames.reset(stream.number, code))
        self.remember_ended(stream.number)
        self.close(stream)

    def close(self, stream: CallStream) -> None:
        """Forget a call, answered or not. May be called again."""
        if not stream.is_open:
            return
        stream.is_open = False
        del self.streams[stream.number]
        stream.cancel()
        # After `cancel`, which has released the messages that this quota counts.
        if stream.public is not None:
            self.public -= 1
            self.quota.remove(stream.public)
        self.outflow.forget(stream)
        if self.deferred:
            self.run_deferred_soon()
        if not self.has_authorized_call:
            self.idle_since = time.monotonic()
        if not self.streams:
            self.when_idle()

    def forget_ended(self, number: int) -> None:
        """Note that a client has ended a call that we ended before: any further frame on it is an error."""
        self.ended_early.pop(number, None)

    @property
    def has_authorized_call(self) -> bool:
        """Whether there is a call that needs a token, where the server has one."""
        return len(self.streams) > self.public

    def close_all(self) -> None:
        self.deferred.clear()
        # A list of its own, because `close` removes each stream.
        for stream in list(self.streams.values()):
            self.close(stream)

    def unanswered(self) -> int:
        """Calls that have come, or begun to come, and have no answer yet."""
        return sum(not stream.only_listens for stream in self.streams.values())
