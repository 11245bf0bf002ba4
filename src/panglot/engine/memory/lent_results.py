"""The shared memory that workers are lent for their results, so that large ones need not go through a socket."""

from __future__ import annotations

from collections.abc import Sequence

from panglot.engine.call import Call
from panglot.engine.memory.buffers import Arena, SharedBuffer
from panglot.engine.workers.worker import Worker
from panglot_worker.line import wire

LOOSE = 256
"""Answers in a row that would have fitted in half of what was lent, after which half of it is lent."""


class PoolMemory:
    """The buffers one pool reads its inputs from, and those it writes its results to.

    A call owns a buffer of its input until it is done. A worker owns another of the same memory from the moment the
    call is sent until it says FREE, and the buffer it may write to until it replies. A dead worker owns nothing: it
    has been waited for.
    """

    def __init__(self, reads: Arena | None = None, writes: Arena | None = None) -> None:
        self.reads = reads
        self.writes = writes
        """None for the last pool: each of its workers has a file of its own, in which no other can spoil an answer."""
        self.gives: Arena | None = None
        """For a model in a chain: what its workers write for the next model, which reads it there."""
        self.takes: list[Arena] = []
        """What the models before it in a chain give."""

    def readable(self) -> tuple[Arena, ...]:
        """What of it is still there: a model may have been unloaded."""
        return tuple(arena for arena in self.takes if arena.fd >= 0)


class Lending:
    """How much a worker is lent for each result: what the pipeline says, or what its answers needed lately."""

    def __init__(self, size: int, smallest: int) -> None:
        """Lend buffers for `size` bytes; with 0, learn from answers of at least `smallest` bytes (0: from none)."""
        self.size = size
        self.smallest = smallest
        self.learns = not size and smallest > 0
        self._loose = 0

    def lend(self, worker: Worker, call: Call) -> int:
        """The address of the buffer that the result of a call may be put in; 0 when there is none."""
        # Of an answer that the worker of another model reads, that worker has the file.
        arena = call.answers_in if self.learns else None
        flag = wire.IN_READS if arena is not None else 0
        if call.hands_on and arena is not None and worker.gives is not None:
            # Its own model alone writes there, so that the worker may map it, and need not ask the system to write.
            arena, flag = worker.gives, 0
        arena = arena or worker.results
        buffer = arena.take(self.size) if arena is not None else None
        if buffer is None:
            return 0
        worker.leases.lent[call.id] = buffer
        return buffer.address | flag

    def learn(self, replies: Sequence[wire.Reply]) -> None:
        """Lend more from now on, where answers were too large for what was lent."""
        largest = max((len(reply.body) for reply in replies if not reply.flags & wire.MORE), default=0)
        if self.learns and largest >= max(self.smallest, self.size + 1):
            self.size, self._loose = 1 << (largest - 1).bit_length(), 0

    def replied(self, worker: Worker, reply: wire.Reply) -> SharedBuffer | None:
        """The buffer with the body of a reply, as lent to its worker; None when the body came by the socket.

        Raises WireError when the worker claims to have used what it was not lent.
        """
        buffer = worker.leases.lent.get(reply.id)
        shared = reply.flags & wire.SHARED
        if shared and (buffer is None or len(reply.body) > len(buffer.view)):
            # What was lent stays so until the worker is dead: who knows what it still writes.
            raise wire.WireError(f"{len(reply.body)} bytes in shared memory that was not lent")
        worker.leases.lent.pop(reply.id, None)
        if self.learns:
            self._note(len(reply.body))
        if buffer is not None and not shared:
            buffer.release()
            return None
        return buffer

    def _note(self, length: int) -> None:
        """Lend less once answers have long been smaller, and at last nothing."""
        self._loose = self._loose + 1 if 2 * length <= self.size else 0
        if self._loose > LOOSE:
            self.size, self._loose = self.size // 2 if self.size >= 2 * self.smallest else 0, 0
