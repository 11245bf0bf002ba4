"""Shared memory that is lent to workers for their results, so that large results need not go through a socket."""

from __future__ import annotations

from collections.abc import Sequence

from panglot.engine.call import Call
from panglot.engine.memory.buffers import SharedBuffer
from panglot.engine.workers.worker import Worker
from panglot_worker.line import wire

LOOSE = 256
"""So many answers in a row that need at most half of the lent size halve this size."""


class Lending:
    """How large a buffer is lent for each result: as the pipeline says, or as large as recent answers."""

    def __init__(self, size: int, smallest: int) -> None:
        """Lend buffers for `size` bytes; with 0, learn from answers of at least `smallest` bytes (0: from none)."""
        self.size = size
        self.smallest = smallest
        self.learns = not size and smallest > 0
        self._loose = 0

    def lend(self, worker: Worker, call: Call) -> int:
        """The address of the buffer that the result of a call may be put in; 0 when there is none."""
        # A worker of another model reads this answer, so it must lie in a file which that worker has mapped.
        arena = call.answers_in if self.learns else None
        flag = wire.IN_READS if arena is not None else 0
        if call.hands_on and arena is not None and worker.gives is not None:
            # Only its own model writes to this file. So the worker may map it, which is cheaper than `pwritev`.
            arena, flag = worker.gives, 0
        arena = arena or worker.results
        buffer = arena.take(self.size) if arena is not None else None
        if buffer is None:
            return 0
        worker.leases.lent[call.id] = buffer
        return buffer.address | flag

    def learn(self, replies: Sequence[wire.Reply]) -> None:
        """Lend larger buffers from now on, where answers were larger than the lent size."""
        # A part of a stream never goes into a buffer: the worker keeps the buffer for the last part.
        largest = max((len(reply.body) for reply in replies if not reply.flags & wire.MORE), default=0)
        if self.learns and largest >= max(self.smallest, self.size + 1):
            self.size, self._loose = 1 << (largest - 1).bit_length(), 0

    def replied(self, worker: Worker, reply: wire.Reply) -> SharedBuffer | None:
        """The lent buffer with the body of a reply; None when the body came by the socket.

        Raises WireError when the worker claims to have used a buffer that it was not lent.
        """
        buffer = worker.leases.lent.get(reply.id)
        shared = reply.flags & wire.SHARED
        if shared and (buffer is None or len(reply.body) > len(buffer.view)):
            # The buffer stays lent until the worker is dead: the worker may still write to it.
            raise wire.WireError(f"{len(reply.body)} bytes in shared memory that was not lent")
        worker.leases.lent.pop(reply.id, None)
        if self.learns:
            self._note(len(reply.body))
        if buffer is not None and not shared:
            buffer.release()
            return None
        return buffer

    def _note(self, length: int) -> None:
        """Lend smaller buffers once answers have been small for long, and at last none."""
        self._loose = self._loose + 1 if 2 * length <= self.size else 0
        if self._loose > LOOSE:
            self.size, self._loose = self.size // 2 if self.size >= 2 * self.smallest else 0, 0
