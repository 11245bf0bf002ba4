"""Shared memory between two pools: slots of one size, handed out and taken back by the front alone."""

from __future__ import annotations

import logging
import os

from panglot.engine.call import Call
from panglot.engine.worker import Worker
from panglot_worker import wire

COUNT = 64

log = logging.getLogger("panglot.engine")


class Slots:
    """A file in memory that both pools have mapped. Pages cost nothing until they are written."""

    def __init__(self, size: int, count: int = COUNT) -> None:
        """Raises OSError when the system gives no such file."""
        page = os.sysconf("SC_PAGE_SIZE")
        self.size = -(-size // page) * page
        self.count = count
        self.fd = os.memfd_create("panglot-slots", os.MFD_CLOEXEC)
        try:
            os.ftruncate(self.fd, self.count * self.size)
        except OSError:
            os.close(self.fd)
            raise
        # The one given back last is taken first: its pages are there already, and warm.
        self._free = list(range(self.count, 0, -1))
        self._holders: dict[int, int] = {}

    def take(self) -> int:
        """A slot, held once; 0 when none is free."""
        if not self._free:
            return 0
        slot = self._free.pop()
        self._holders[slot] = 1
        return slot

    def hold(self, slot: int) -> None:
        self._holders[slot] += 1

    def drop(self, slot: int) -> None:
        self._holders[slot] -= 1
        if not self._holders[slot]:
            del self._holders[slot]
            self._free.append(slot)

    @property
    def used(self) -> int:
        return len(self._holders)

    def for_worker(self) -> tuple[int, int, int]:
        return self.fd, self.count, self.size

    def close(self) -> None:
        os.close(self.fd)


def create(size: int) -> Slots | None:
    """Slots, or none with a word in the log: everything then travels by the sockets."""
    if not size:
        return None
    try:
        return Slots(size)
    except OSError as error:
        log.warning("no shared memory between the pools (%s): results travel by their sockets", error.strerror)
        return None


class PoolMemory:
    """The slots one pool reads its inputs from, and those it writes its results to.

    A call holds the slot its input lies in while it waits. A worker holds that slot from the moment it is sent until it
    says FREE, and the slot it may write to until it replies. A dead worker holds nothing: it has been waited for.
    """

    def __init__(self, reads: Slots | None, writes: Slots | None) -> None:
        self.reads = reads
        self.writes = writes

    def lend(self, worker: Worker, call: Call) -> int:
        """A call is being sent: the slot for its result, or 0."""
        if call.slot:
            worker.looks_at[call.id] = call.slot
            call.slot = 0
        slot = self.writes.take() if self.writes is not None else 0
        if slot:
            worker.writes_to[call.id] = slot
        return slot

    def replied(self, worker: Worker, reply: wire.Reply) -> int:
        """The slot a result lies in, now held by the call; 0 when there is none."""
        if reply.flags & wire.UNRUN:
            self.freed(worker, reply.id)
        slot = worker.writes_to.pop(reply.id, 0)
        if slot and not reply.flags & wire.SHARED:
            assert self.writes is not None
            self.writes.drop(slot)
            return 0
        return slot

    def freed(self, worker: Worker, item_id: int) -> None:
        """A worker no longer looks at an item's input."""
        slot = worker.looks_at.pop(item_id, 0)
        if slot and self.reads is not None:
            self.reads.drop(slot)

    def recalled(self, worker: Worker, call: Call) -> None:
        """A call goes back to the queue while its worker may still look at it. Its id must be the old one."""
        slot = worker.looks_at.get(call.id, 0)
        if slot and self.reads is not None:
            self.reads.hold(slot)
            call.slot = slot

    def died(self, worker: Worker, again: list[Call]) -> None:
        """Calls that run again keep their input; all else the worker held is free."""
        for call in again:
            call.slot = call.slot or worker.looks_at.pop(call.id, 0)
        for item_id in list(worker.looks_at):
            self.freed(worker, item_id)
        if self.writes is not None:
            for slot in worker.writes_to.values():
                self.writes.drop(slot)
        worker.writes_to.clear()

    def left(self, call: Call) -> None:
        """A call left the queue without having been sent."""
        if call.slot and self.reads is not None:
            self.reads.drop(call.slot)
            call.slot = 0

    def unused(self, slot: int) -> None:
        """A result nobody waits for any more."""
        if slot and self.writes is not None:
            self.writes.drop(slot)
