"""The files of shared memory that the workers of one pool map."""

from __future__ import annotations

from panglot.engine.memory.buffers import Arena


class PoolMemory:
    """The files of one pool: the file with its inputs, and the file for its results.

    A call owns a buffer with its input until it is done. A worker owns another buffer of the same memory, from the
    moment the call is sent until it says FREE. It owns the buffer for the result until it replies. A dead worker owns
    nothing: the front has waited for its end.
    """

    def __init__(self, reads: Arena | None = None, writes: Arena | None = None) -> None:
        self.reads = reads
        self.writes = writes
        """None for the last pool: each of its workers has its own file, in which no other can spoil an answer."""
        self.gives: Arena | None = None
        """For a model in a chain: the file in which its workers write results for the next model."""
        self.takes: list[Arena] = []
        """The same files of the models before it in a chain."""

    def readable(self) -> tuple[Arena, ...]:
        """The files among them that are open: a model may have been unloaded."""
        return tuple(arena for arena in self.takes if arena.fd >= 0)
