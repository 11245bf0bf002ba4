"""One call: the stream of HTTP/2 that it has, as far as it has come and been answered."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from panglot.web.grpc_call import RpcCall
from panglot.web.grpc_services import Service
from panglot.web.grpc_statuses import UNIMPLEMENTED, RpcError
from panglot.web.http2.call_head import CallHead
from panglot.web.http2.messages import MessageReader, WholeMessage

if TYPE_CHECKING:
    from panglot.web.http2.calls import Calls
    from panglot.web.http2.talk import Talk, Task

WINDOW = 1 << 22
"""Bytes that a client may send on a stream before we have taken any of them."""
ONE_MESSAGE = RpcError(UNIMPLEMENTED, "this method takes one message")


class CallStream:
    """What is known of one call. `Calls` begins and ends it."""

    __slots__ = (
        "began", "call", "calls", "credit", "ended", "head", "held", "is_answered", "is_cut", "is_open", "last",
        "last_words", "message", "moved", "number", "opened", "owed", "pending", "reader", "service", "since", "talk",
        "task", "waiting", "window",
    )  # fmt: skip

    def __init__(self, calls: Calls, number: int, head: CallHead, service: Service, now: float) -> None:
        self.calls = calls
        self.number = number
        self.head = head
        self.service = service
        self.is_open = True
        # What comes
        self.credit = WINDOW
        """Bytes that the client may still send."""
        self.owed = 0
        """Bytes that came and that it was not told it may send again."""
        self.ended = False
        """Whether the client has said all."""
        infers = service.answer is None
        self.reader = MessageReader(calls.front, self._take, head.encoding != b"identity", infers)
        self.message: WholeMessage | None = None
        self.talk: Talk | None = None
        self.task: Task | None = None
        self.held = 0
        """Bytes of the message, as counted in `Room.held`."""
        self.began = self.since = self.last = now
        """When the call began, then the message being awaited, and when something of it last came."""
        # What leaves
        self.window = calls.outflow.initial
        self.opened = False
        self.pending: deque[list[memoryview]] = deque()
        """Messages that have not left, each in pieces; the first may have left in part."""
        self.is_cut = False
        self.waiting = 0
        """Bytes of these."""
        self.moved = now
        """When something of them last left."""
        self.last_words = b""
        """The end of the answer, to be sent after them."""
        self.is_answered = False
        self.call: RpcCall | None = None

    def _take(self, message: WholeMessage) -> None:
        if self.talk is not None:
            self.talk.take(message)
        elif self.message is None:
            self.message, self.held = message, len(message.body)
            self.calls.front.room.held += self.held
        else:
            raise ONE_MESSAGE

    def let_go(self) -> WholeMessage:
        """The only message, which whoever answers it counts from now on."""
        message, self.message = self.message, None
        assert message is not None
        self.calls.front.room.held -= self.held
        return message

    def give_up(self) -> None:
        """Stop whatever answers the call, and let go of what has come of it."""
        self.reader.drop()
        if self.message is not None:
            landing = self.let_go().landing
            if landing is not None:
                landing.berth.drop()
        if self.call is not None:
            self.call.cancel()
            self.call = None
        if self.task is not None:
            self.task.cancel()
        if self.talk is not None:
            self.talk.drop()

    @property
    def is_listening(self) -> bool:
        """Whether nothing is being said on it: what it waits for may never come."""
        return self.talk is not None and not (self.talk.unread or self.pending or self.reader.is_within)

    def told(self, code: int, sentence: str, message: Any, more: bool) -> None:
        """Send the engine's answer. See `grpc_call.Told`."""
        if self.is_open and not self.is_answered:
            self.call, self.is_answered = None, True
            if code:
                self.calls.refuse(self, code, sentence)
            else:
                self.calls.answered(self, message)

    def sent(self, size: int) -> None:
        self.waiting -= size
        self.window -= size
        self.moved = self.calls.now

    def drained(self) -> None:
        """Go on after everything has left: say the end, or let whoever answers say more."""
        if self.last_words:
            self.calls.outflow.write(self.last_words)
            self.calls.finished(self)
        elif self.talk is not None:
            self.talk.wake()
