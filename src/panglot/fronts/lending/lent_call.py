"""A call of another front in this front's engine, and how calls travel between the two."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from panglot.engine.call import Call, CallProgress, Fault, MemoryQuota
from panglot_worker.line import wire

SEPARATOR = b"\1"
"""Separates the parts of a lent call's address, and its head. HTTP allows this byte in none of them."""
HEAD_START = 0.05
"""Seconds by which the deadline of a lent call passes earlier in the front that runs it."""
HELD = b" held"
"""Ends the limit of a job whose client waits for it."""
NO_DEADLINE = 1e9
"""Seconds: a call with more time than that has no deadline."""


class LentAddress(NamedTuple):
    """What a front needs to know to run a call of another front."""

    slot: int
    """The position of the model."""
    run_limit: float | None
    """Of a job: seconds that its run may take, or 0 for the limit of the model. None: the call is no job."""
    held: bool
    """Whether it is a job whose client waits for it."""
    lane: str
    head: bytes


class Borrower(Protocol):
    """Sends back the answers to calls of one other front."""

    index: int

    def answer(self, reply: wire.Reply) -> None:
        """Send an answer, or a part of one, at the end of this turn of the loop."""

    def answer_fault(self, item_id: int, fault: Fault) -> None:
        """Send an answer that this engine gives instead of the script."""

    def report(self, item_id: int, news: dict[str, Any]) -> None:
        """Send news of a call: progress and output of its script, or the death of a worker."""


class AddedQuota:
    """Counts what a lent call has here beyond its body, such as files that were fetched for it: a `MemoryQuota`.

    The front that lent the call counts the body.
    """

    def __init__(self, quota: MemoryQuota, body: int) -> None:
        self._quota = quota
        self._body = self._used = body

    @property
    def used(self) -> int:
        return self._used

    @used.setter
    def used(self, used: int) -> None:
        self._quota.used += self._more(used)
        self._used = used

    def take(self, size: int, total: int) -> bool:
        """Count `size` more bytes of a body that then has `total`; False when these are too many."""
        used = self._used + size
        more = self._more(used)
        if more and not self._quota.take(more, total):
            return False
        self._used = used
        return True

    def _more(self, used: int) -> int:
        """How many more bytes than now are beyond the body, when so many are used."""
        return max(0, used - self._body) - max(0, self._used - self._body)


class LentCall(Call):
    """A call of another front. For the engine it is a call like any other: batch, deadline, stream, death of a worker.

    The other front has its client and counts its body. This front counts what is added here.
    """

    __slots__ = ("borrower", "item_id", "untaken")
    lent = True

    def __init__(
        self, borrower: Borrower, item: wire.Item, lane: str, head: bytes, now: float, quota: MemoryQuota | None
    ) -> None:
        super().__init__()
        self.borrower = borrower
        self.item_id = item.id
        """Its number in the other front."""
        self.untaken = 0
        """Bytes of its stream that were sent, and that its client may not have taken yet."""
        self.lane, self.head = lane, head
        self.request_id = head.partition(b"\0")[0]
        self.pieces, self.size = (item.body,), len(item.body)
        if quota is not None:
            self.quota = AddedQuota(quota, self.size)
        self.arrived = now
        self.deadline = now + item.seconds_left if item.seconds_left < NO_DEADLINE else math.inf

    def reply(self, reply: wire.Reply) -> None:
        # Without SHARED: the body lies in memory that the other front has not mapped, and is copied to the link.
        self.borrower.answer(reply._replace(id=self.item_id, flags=reply.flags & ~wire.SHARED))

    def fail(self, fault: Fault) -> None:
        self.borrower.answer_fault(self.item_id, fault)

    def report(self, progress: CallProgress) -> None:
        self.borrower.report(self.item_id, {"fraction": progress.fraction, "text": progress.text})

    def tell_death(self) -> None:
        self.borrower.report(self.item_id, {"died": True})


class LentJob(LentCall):
    """A job of another front, which leaves the requests of this front the workers that they need."""

    __slots__ = ("run_limit",)
    background = True
    reserves = False

    def printed(self, source: str, text: str) -> None:
        self.borrower.report(self.item_id, {"source": source, "printed": text})


class LentHeldJob(LentJob):
    """A job of another front whose client waits for it. It goes before other jobs, as requests do."""

    __slots__ = ()
    background = False


def lent_call(
    borrower: Borrower, item: wire.Item, address: LentAddress, now: float, quota: MemoryQuota | None
) -> LentCall:
    """The call of another front that came as this item; without a quota, of a model that is not here."""
    if address.run_limit is None:
        return LentCall(borrower, item, address.lane, address.head, now, quota)
    kind = LentHeldJob if address.held else LentJob
    job = kind(borrower, item, address.lane, address.head, now, quota)
    job.run_limit = address.run_limit
    return job


def run_frame(slot: int, calls: Sequence[tuple[int, Call]], now: float) -> list[wire.Buffer]:
    """A RUN frame with calls, each with its number, for the model of this slot. `address` reads the heads of it."""
    items = []
    for number, call in calls:
        limit = b"" if call.reserves else b"%.3f" % call.run_limit + (b"" if call.background else HELD)
        head = SEPARATOR.join((b"%d" % slot, limit, call.lane.encode(), call.head))
        pieces, size = call.pieces, call.size
        if call.buffer is not None:
            # A copy: the client may disconnect, and its buffer be used for another body, before all is written.
            pieces = (b"".join(call.body()),)
            size = len(pieces[0])
        left = call.deadline - now
        # The deadline there passes first: the front that runs the call knows why it is late.
        left -= HEAD_START if left > 10 * HEAD_START else 0.0
        items.append((number, min(left, 2 * NO_DEADLINE), head, pieces, size, 0, 0))
    return wire.run_frame(items, 0)


def address(head: bytes) -> LentAddress:
    """The address in the head of a lent call. Raises WireError."""
    try:
        slot, limit, lane, rest = head.split(SEPARATOR, 3)
        if slot.isdigit():
            seconds = float(limit.removesuffix(HELD)) if limit else None
            return LentAddress(int(slot), seconds, limit.endswith(HELD), lane.decode(), rest)
    except ValueError:
        pass
    raise wire.WireError("a lent call without an address")
