"""One call: its stream of HTTP/2, how much of it has come, and how much of the answer is sent."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from panglot.web.access.keys import KeyHolder
from panglot.web.grpc.call import RpcCall
from panglot.web.grpc.inbox import Inbox
from panglot.web.grpc.services import Service
from panglot.web.http2.headers.call_head import CallHead

if TYPE_CHECKING:
    from panglot.web.http2.answer_task import AnswerTask
    from panglot.web.http2.bidi_call import BidiCall
    from panglot.web.http2.calls import Calls
    from panglot.web.http2.watch import Watch

WINDOW = 1 << 22
"""Bytes that a client may send on a stream before we have taken any of them."""


class CallStream:
    """The state of one call. `Calls` begins and ends it."""

    __slots__ = (
        "began",
        "bidi",
        "call",
        "calls",
        "cost",
        "credit",
        "ended",
        "final_headers",
        "head",
        "holder",
        "inbox",
        "is_answered",
        "is_open",
        "is_partly_sent",
        "last",
        "last_sent",
        "number",
        "opened",
        "owed",
        "pending",
        "public",
        "service",
        "since",
        "task",
        "waiting",
        "watch",
        "window",
    )  # fmt: skip

    def __init__(
        self, calls: Calls, number: int, head: CallHead, service: Service, cost: int, holder: KeyHolder | None = None
    ) -> None:
        now = calls.now
        self.calls = calls
        self.number = number
        self.head = head
        self.service = service
        self.holder = holder
        """The client, where it came with a key."""
        self.is_open = True
        self.cost = cost
        """What its headers cost in the budget, should the call come to nothing."""
        # What comes
        self.credit = WINDOW
        """Bytes that the client may still send."""
        self.owed = 0
        """Bytes that came, and that no WINDOW_UPDATE has given back yet."""
        self.ended = False
        """Whether the client has sent all."""
        self.public = calls.quota.admit(self) if service.is_public else None
        """Its part of the public quota, where it needs no token."""
        encoding = head.encoding if head.encoding != b"identity" else b""
        self.inbox = Inbox(calls.front, service, encoding, self.public or calls.front.quota)
        self.bidi: BidiCall | None = None
        self.task: AnswerTask | None = None
        self.watch: Watch | None = None
        self.began = self.since = self.last = now
        """When the call began, then the message being awaited, and when something of it last came."""
        # What is sent
        self.window = 0
        """Bytes that the client lets us send on it, beyond those with which every stream begins (`Outflow.initial`)."""
        self.opened = False
        self.pending: deque[list[memoryview]] = deque()
        """Messages that are not sent yet, each in pieces; the first may be sent in part."""
        self.is_partly_sent = False
        self.waiting = 0
        """Bytes of these."""
        self.last_sent = now
        """When a part of them was last sent, or began to wait."""
        self.final_headers = b""
        """The end of the answer, to be sent after them."""
        self.is_answered = False
        self.call: RpcCall | None = None

    def cancel(self) -> None:
        """Cancel the answer of the call, and release its messages."""
        # A refused call comes here twice, from `refuse` and from `close`: each step can be repeated.
        self.inbox.close()
        if self.call is not None:
            self.call.cancel()
            self.call = None
        if self.task is not None:
            self.task.cancel()
        if self.watch is not None:
            self.watch.cancel()

    @property
    def only_listens(self) -> bool:
        """Whether it only waits for news or for its client: it may wait for ever."""
        if self.bidi is None:
            return self.watch is not None and not self.pending
        return not (self.inbox.has_more or self.pending or self.inbox.is_within)

    def on_answer(self, code: int, sentence: str, message: Any, more: bool) -> None:
        """Send the engine's answer. See `grpc.call.OnAnswer`."""
        # The engine may answer after the call was refused, in the same turn of the loop: the first answer counts.
        if self.is_open and not self.is_answered:
            # The engine has ended its call: `refuse` below must not cancel it.
            self.call, self.is_answered = None, True
            if code:
                self.calls.refuse(self, code, sentence)
            else:
                self.calls.answered(self, message)

    def sent(self, size: int) -> None:
        self.waiting -= size
        self.window -= size
        self.last_sent = self.calls.now

    def drained(self) -> None:
        """Go on after everything is sent: send the end, or wake the service, which may send more."""
        if self.final_headers:
            self.calls.outflow.write(self.final_headers)
            self.calls.finished(self)
        elif self.bidi is not None:
            self.bidi.wake()
