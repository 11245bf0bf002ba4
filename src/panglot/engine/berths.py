"""Shared memory between two pools, cut into berths of one size. Only the front hands them out and takes them back."""

from __future__ import annotations

import logging
import os

from panglot.engine.call import Call
from panglot.engine.worker import Worker
from panglot_worker import wire

COUNT = 64

log = logging.getLogger("panglot.engine")


class Berths:
    """A file in memory that both pools have mapped. Pages cost nothing until they are written."""

    def __init__(self, size: int, count: int = COUNT) -> None:
        """Raises OSError when the system gives no such file."""
        page = os.sysconf("SC_PAGE_SIZE")
        self.size = -(-size // page) * page
        self.count = count
        self.fd = os.memfd_create("panglot-berths", os.MFD_CLOEXEC)
        try:
            os.ftruncate(self.fd, self.count * self.size)
        except OSError:
            os.close(self.fd)
            raise
        # The one given back last is taken first: its pages are there already, and warm.
        self._free = list(range(self.count, 0, -1))
        self._holders: dict[int, int] = {}

    def take(self) -> int:
        """Hand out a free berth, which then has one holder; 0 when none is free."""
        if not self._free:
            return 0
        berth = self._free.pop()
        self._holders[berth] = 1
        return berth

    def hold(self, berth: int) -> None:
        """Add a holder: the berth is free again once each has dropped it."""
        self._holders[berth] += 1

    def drop(self, berth: int) -> None:
        self._holders[berth] -= 1
        if not self._holders[berth]:
            del self._holders[berth]
            self._free.append(berth)

    @property
    def used(self) -> int:
        return len(self._holders)

    def for_worker(self) -> tuple[int, int, int]:
        return self.fd, self.count, self.size

    def close(self) -> None:
        os.close(self.fd)


def create(size: int) -> Berths | None:
    """Berths of this size; None, with a warning, when the system gives none: results then travel by the sockets."""
    if not size:
        return None
    try:
        return Berths(size)
    except OSError as error:
        log.warning("no shared memory between the pools (%s): results travel by their sockets", error.strerror)
        return None


class PoolMemory:
    """The berths one pool reads its inputs from, and those it writes its results to.

    A call holds the berth its input lies in while it waits. A worker holds that berth from the moment the call is sent
    until it says FREE, and the berth it may write to until it replies. A dead worker holds nothing: it has been waited
    for.
    """

    def __init__(self, reads: Berths | None, writes: Berths | None) -> None:
        self.reads = reads
        self.writes = writes

    def lend(self, worker: Worker, call: Call) -> int:
        """Note which berths a call that is being sent uses. Returns the one its result may be put in, or 0."""
        if call.berth:
            worker.looks_at[call.id] = call.berth
            call.berth = 0
        berth = self.writes.take() if self.writes is not None else 0
        if berth:
            worker.writes_to[call.id] = berth
        return berth

    def replied(self, worker: Worker, reply: wire.Reply) -> int:
        """The berth that holds the result of this reply, now held by the call; 0 when the result came by the socket."""
        if reply.flags & wire.UNRUN:
            self.freed(worker, reply.id)
        berth = worker.writes_to.pop(reply.id, 0)
        if berth and not reply.flags & wire.SHARED:
            assert self.writes is not None
            self.writes.drop(berth)
            return 0
        return berth

    def freed(self, worker: Worker, item_id: int) -> None:
        """Drop the berth of an item's input: the worker no longer looks at it."""
        berth = worker.looks_at.pop(item_id, 0)
        if berth and self.reads is not None:
            self.reads.drop(berth)

    def recalled(self, worker: Worker, call: Call) -> None:
        """Hold the input of a call that goes back to the queue while its worker may still look at it.

        Called before the call gets its new id.
        """
        berth = worker.looks_at.get(call.id, 0)
        if berth and self.reads is not None:
            self.reads.hold(berth)
            call.berth = berth

    def died(self, worker: Worker, again: list[Call]) -> None:
        """Free what a dead worker held, except for the inputs of calls that run again."""
        for call in again:
            call.berth = call.berth or worker.looks_at.pop(call.id, 0)
        for item_id in list(worker.looks_at):
            self.freed(worker, item_id)
        if self.writes is not None:
            for berth in worker.writes_to.values():
                self.writes.drop(berth)
        worker.writes_to.clear()

    def left(self, call: Call) -> None:
        """Drop the input of a call that left the queue without having been sent."""
        if call.berth and self.reads is not None:
            self.reads.drop(call.berth)
            call.berth = 0

    def unused(self, berth: int) -> None:
        """Drop a result that nobody waits for any more."""
        if berth and self.writes is not None:
            self.writes.drop(berth)
