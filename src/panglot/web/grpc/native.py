"""Calls of the gRPC services that dialects bring: from the client's message to the script, and its answers back."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from panglot.web.front import Front
from panglot.web.grpc.call import InferCall, OnAnswer, RpcCall, own, submit
from panglot.web.grpc.messages import NAMES, text_fields
from panglot.web.grpc.received_message import ReceivedMessage
from panglot.web.grpc.statuses import (
    INTERNAL,
    INVALID_ARGUMENT,
    UNIMPLEMENTED,
    Refusal,
    RpcError,
    status_and_sentence,
)
from panglot.web.grpc.stream_infer import BACKLOG, TOO_SLOW
from panglot.web.http1.heads.request_head import REQUEST_ID
from panglot.web.paths import RpcDestination, RpcRoute, unknown_model
from panglot_worker.line import wire

if TYPE_CHECKING:
    from panglot.web.http2.bidi_call import BidiCall

UNREADABLE = Refusal(INVALID_ARGUMENT, "the message cannot be read")
NO_NAME = Refusal(INVALID_ARGUMENT, f"the model's name is not in the first {NAMES} bytes of the message: send it first")
IN_PARTS = "the script answers in parts, and this method gives one answer"
NO_MESSAGE = Refusal(UNIMPLEMENTED, "this method takes one message")


def begin(front: Front, route: RpcRoute, about: InferCall, message: ReceivedMessage, on_answer: OnAnswer) -> RpcCall:
    """Submit a call; `on_answer` may be called before this returns.

    Raises RpcError: the message is then as it was.
    """
    destination = _destination(front, route, message)
    model = destination.model
    call = RpcCall(front, model, destination.route, on_answer)
    if not route.method.streams:
        call.on_answer = _one_answer(call, on_answer)
    call.write_error = route.service.error or status_and_sentence
    call.request_id = about.request_id if REQUEST_ID.fullmatch(about.request_id) else front.new_request_id()
    call.trace = about.trace
    head = destination.head
    if call.trace:
        head = wire.Head.unpack(head)._replace(traceparent=call.trace).pack()
    call.head = call.request_id + head
    longest = model.settings.timeout
    call.deadline = call.arrived + (longest if about.seconds is None else min(longest, max(0.0, about.seconds)))
    own(call, about, message)
    submit(call)
    return call


def _destination(front: Front, route: RpcRoute, message: ReceivedMessage) -> RpcDestination:
    """The model that a message names, which is unfolded if it is compressed. Raises RpcError."""
    message.unfold()
    method = route.method
    name = version = ""
    if method.model_field:
        try:
            texts, is_all = text_fields(message.view, (method.model_field, method.version_field))
        except ValueError:
            raise UNREADABLE.error() from None
        name, version = texts.get(method.model_field, ""), texts.get(method.version_field, "")
        if not name and not is_all:
            raise NO_NAME.error()
    destination = route.models.find(name, version)
    if destination is None:
        write = route.service.error or status_and_sentence
        raise RpcError(*write(unknown_model(front.models, name, version)))
    return destination


def _one_answer(call: RpcCall, on_answer: OnAnswer) -> OnAnswer:
    """Refuse an answer in parts, of which the client could take only the first."""

    def pass_on(code: int, sentence: str, message: wire.Buffer, more: bool) -> None:
        if more:
            # First: a cancelled call gets no further part.
            call.cancel()
            on_answer(INTERNAL, IN_PARTS, b"", False)
        else:
            on_answer(code, sentence, message, more)

    return pass_on


class StreamedAnswer:
    """A call with many answers, which are sent as its client reads them. One message of the client runs at a time."""

    def __init__(self, front: Front, route: RpcRoute, open_calls: set[RpcCall], stream: BidiCall) -> None:
        self.front = front
        self.route = route
        self.open_calls = open_calls
        """The open calls of the whole server."""
        self.stream = stream
        self._messages: deque[bytes] = deque()
        self._waiting = 0
        """Bytes of these."""
        self._failure: RpcError | None = None
        self._has_ended = False
        self._news = asyncio.Event()

    async def run(self) -> None:
        """Take the client's message, or each of its messages, and send all answers. Raises RpcError."""
        message = await self.stream.next()
        if message is None:
            raise NO_MESSAGE.error()
        failure = self.route.method.failure
        if failure is None:
            await self._answer(message)
            return
        while message is not None:
            try:
                await self._answer(message)
            except RpcError as error:
                await self.stream.write(failure(error.code, error.message))
            message = await self.stream.next()

    async def _answer(self, message: ReceivedMessage) -> None:
        self._messages.clear()
        self._waiting, self._failure, self._has_ended = 0, None, False
        call = begin(
            self.front,
            self.route,
            InferCall(b"", holder=self.stream.holder, path=self.stream.path),
            message,
            self._take,
        )
        self.open_calls.add(call)
        try:
            await self._write()
        finally:
            self.open_calls.discard(call)
            # Its client has disconnected or reads too slowly, or a part was a failure.
            if not call.is_over:
                call.cancel()

    def _take(self, code: int, sentence: str, message: wire.Buffer, more: bool) -> None:
        if code:
            self._failure = RpcError(code, sentence)
        elif more or len(message):
            # The end of an answer in parts is empty; a whole answer may be empty too, and then says nothing.
            self._messages.append(bytes(message))
            self._waiting += len(message)
        self._has_ended = not more
        if self._waiting > BACKLOG:
            self._failure = TOO_SLOW.error()
        self._news.set()

    async def _write(self) -> None:
        while True:
            # A failure at the end comes behind the parts that wait. An earlier one takes their place.
            while self._messages and (self._failure is None or self._has_ended):
                message = self._messages.popleft()
                await self.stream.write(message)
                self._waiting -= len(message)
            if self._failure is not None:
                raise self._failure
            if self._has_ended:
                return
            await self._news.wait()
            self._news.clear()
