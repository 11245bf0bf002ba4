"""The shared memory that workers are lent for their results, so that large ones need not go through a socket."""

from __future__ import annotations

from collections.abc import Sequence

from panglot.engine.call import Call
from panglot.engine.memory.buffers import Berth, Berths
from panglot.engine.workers.worker import Worker
from panglot_worker.line import wire

LOOSE = 256
"""Answers in a row that would have fitted in half of what was lent, after which half of it is lent."""


class PoolMemory:
    """The berths one pool reads its inputs from, and those it writes its results to.

    A call holds the berth its input lies in until it is done. A worker holds that berth from the moment the call is
    sent until it says FREE, and the berth it may write to until it replies. A dead worker holds nothing: it has been
    waited for.
    """

    def __init__(self, reads: Berths | None = None, writes: Berths | None = None) -> None:
        self.reads = reads
        self.writes = writes
        """None for the last pool: each of its workers has a file of its own, in which no other can spoil an answer."""


class Lending:
    """How much a worker is lent for each result: what the row says, or as much as its answers have needed lately."""

    def __init__(self, size: int, smallest: int) -> None:
        """Lend berths for `size` bytes; with 0, learn from answers of at least `smallest` bytes, which may be 0 too."""
        self.size = size
        self.smallest = smallest
        self.learns = not size and smallest > 0
        self._loose = 0

    def lend(self, worker: Worker, call: Call) -> int:
        """The place of the berth that the result of a call may be put in; 0 when there is none."""
        berth = worker.results.take(self.size) if worker.results is not None else None
        if berth is None:
            return 0
        worker.berths.lent[call.id] = berth
        return berth.place

    def learn(self, replies: Sequence[wire.Reply]) -> None:
        """Lend more from now on, where answers were too large for what was lent."""
        largest = max((len(reply.body) for reply in replies if not reply.flags & wire.MORE), default=0)
        if self.learns and largest >= max(self.smallest, self.size + 1):
            self.size, self._loose = 1 << (largest - 1).bit_length(), 0

    def replied(self, worker: Worker, reply: wire.Reply) -> Berth | None:
        """The berth that holds the body of a reply, as lent to its worker; None when the body came by the socket.

        Raises WireError when the worker claims to have used what it was not lent.
        """
        berth = worker.berths.lent.get(reply.id)
        shared = reply.flags & wire.SHARED
        if shared and (berth is None or len(reply.body) > len(berth.view)):
            # What was lent stays so until the worker is dead: who knows what it still writes.
            raise wire.WireError(f"{len(reply.body)} bytes in shared memory that was not lent")
        worker.berths.lent.pop(reply.id, None)
        if self.learns:
            self._note(len(reply.body))
        if berth is not None and not shared:
            berth.drop()
            return None
        return berth

    def _note(self, length: int) -> None:
        """Lend less once answers have long been smaller, and at last nothing."""
        self._loose = self._loose + 1 if 2 * length <= self.size else 0
        if self._loose > LOOSE:
            self.size, self._loose = self.size // 2 if self.size >= 2 * self.smallest else 0, 0
