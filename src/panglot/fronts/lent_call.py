"""A call of another front in this front's engine, and how calls travel between the two."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

from panglot.engine.call import Call, Fault
from panglot_worker.line import wire

SEPARATOR = b"\1"
"""Stands between the address of a lent call and its head. HTTP allows it in none of them."""
NO_DEADLINE = 1e9
"""Seconds: a call with more time than that has no deadline."""


class Borrower(Protocol):
    """Sends back the answers to calls of one other front."""

    def answer(self, reply: wire.Reply) -> None:
        """Send an answer, or a part of one, at the end of this turn of the loop."""

    def answer_fault(self, item_id: int, fault: Fault) -> None:
        """Send what this engine answers in the script's place."""


class LentCall(Call):
    """A call of another front. For the engine it is a call like any other: batch, deadline, stream, death of a worker.

    The other front counts its bytes and has its client; so nothing is counted here.
    """

    __slots__ = ("borrower", "item_id", "untaken")
    lent = True

    def __init__(self, borrower: Borrower, item: wire.Item, lane: str, head: bytes, now: float) -> None:
        super().__init__()
        self.borrower = borrower
        self.item_id = item.id
        """What the other front calls it."""
        self.untaken = 0
        """Bytes of its stream that were sent, and that its client may not have taken."""
        self.lane, self.head = lane, head
        self.request_id = head.partition(b"\0")[0]
        self.pieces, self.size = (item.body,), len(item.body)
        self.arrived = now
        self.deadline = now + item.seconds_left if item.seconds_left < NO_DEADLINE else math.inf

    def reply(self, reply: wire.Reply) -> None:
        # Without SHARED: the body lies in memory that the other front has not mapped, and is copied to the link.
        self.borrower.answer(reply._replace(id=self.item_id, flags=reply.flags & ~wire.SHARED))

    def fail(self, fault: Fault) -> None:
        self.borrower.answer_fault(self.item_id, fault)


def run_frame(slot: int, calls: Sequence[tuple[int, Call]], now: float) -> list[wire.Buffer]:
    """A RUN frame with calls, each with its number, for the model of this slot; `address` reads their heads."""
    items = []
    for number, call in calls:
        head = b"%d%b%b%b%b" % (slot, SEPARATOR, call.lane.encode(), SEPARATOR, call.head)
        pieces = call.pieces
        if call.buffer is not None:
            # A copy: the client may disconnect, and its buffer be used for another body, before all is written.
            pieces = (bytes(call.buffer.view[: call.size]),)
        items.append((number, min(call.deadline - now, 2 * NO_DEADLINE), head, pieces, call.size, 0, 0))
    return wire.run_frame(items, 0)


def address(head: bytes) -> tuple[int, str, bytes]:
    """The slot of the model, the lane and the head of a lent call. Raises WireError."""
    parts = head.split(SEPARATOR, 2)
    if len(parts) != 3 or not parts[0].isdigit():
        raise wire.WireError("a lent call without an address")
    return int(parts[0]), parts[1].decode(), parts[2]
