"""One request as the engine sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from panglot.engine.memory.buffers import Arena
from panglot.engine.memory.buffers import SharedBuffer as SharedBuffer
from panglot_worker.line import wire

QUEUED, RUNNING, DONE = 0, 1, 2
"""The states of a call, in the order it passes them; RUNNING goes back to QUEUED when the call runs again.

Who may change the state: `Queue.put_back` and `Pool` make it QUEUED, `Worker.run` makes it RUNNING, and the code that
decides the answer makes it DONE *before* it tells anybody: the pool on a final reply or a death, the engine on a
deadline or a cancellation. A call that is DONE is never answered again: all other code that has it looks at the state
first.
"""
LONGEST_COPY = 8 << 20
"""Bytes of a body that are copied in one go, in a few milliseconds."""


class Fault(NamedTuple):
    """An answer that the engine gives instead of the script."""

    status: int
    code: str
    message: str
    retry_after: int = 0
    details: Mapping[str, Any] | None = None
    """Further values that a script gives with its error."""


class Step(NamedTuple):
    """The time a call spent in one pool of a pipeline."""

    pool: str
    queued_us: int
    run_us: int
    times: tuple[int, int, int, int, int]


class CallProgress(NamedTuple):
    """How far a call is, as its script last reported."""

    fraction: float | None
    """A part of 1; None: the script does not tell it."""
    text: Any = ""
    """The message of the script: a text, or any other value that JSON can hold."""


class MemoryQuota(Protocol):
    """Counts the bytes of the requests of a server, or of one model."""

    used: int

    def take(self, size: int, total: int) -> bool:
        """Count `size` more bytes of a body that then has `total`; False when these are too many."""


class Uncounted:
    """The quota of calls that nobody counts, such as those of a command."""

    def __init__(self) -> None:
        self.used = 0

    def take(self, size: int, total: int) -> bool:
        self.used += size
        return True


class Call:
    """A request on its way. The web makes subclasses, which get the answer by `reply` or `fail`.

    Exactly one final `reply` (without the MORE flag) or one `fail` arrives, unless the call was cancelled first.

    A call owns its body: the pieces or the buffer they are in, and the bytes that its quota counts. `release` gives
    all of that back, and may be called again. The reader of the body calls it until the call is submitted; from then on
    the engine does, which refuses the call, finishes it or cancels it. Nobody else has to.
    """

    __slots__ = (
        "ahead",
        "alone",
        "arrived",
        "buffer",
        "chunks",
        "deadline",
        "dispatched",
        "head",
        "id",
        "killers",
        "kind",
        "lane",
        "length",
        "moves",
        "pieces",
        "pool_index",
        "queued_us",
        "quota",
        "request_id",
        "retried",
        "size",
        "state",
        "trail",
        "worker",
    )

    background = False
    """Whether it is a job, which leaves requests the workers that they need."""
    reserves = True
    """Whether jobs leave workers free for more requests like it; else it goes before them when it waits, no more."""
    lent = False
    """Whether it is a request of another front, which counts it."""
    answers_in: Arena | None = None
    """The shared memory for its answer, where this is not the memory of its worker."""
    hands_on = False
    """Whether its answer goes to another model, so that workers of that model read it."""
    run_limit = 0.0
    """Seconds that its run may take, where this is not the limit of the model; 0: the limit of the model counts."""

    def __init__(self, quota: MemoryQuota | None = None) -> None:
        """A call without a body; `quota` has counted, or will count, the bytes of it."""
        self.quota = quota if quota is not None else Uncounted()
        self.id = 0
        self.request_id = b""
        self.head = b""
        self.pieces: Sequence[wire.Buffer] = ()
        self.size = 0
        self.arrived = 0.0
        self.deadline = 0.0
        self.dispatched = 0.0
        self.queued_us = 0
        self.state = QUEUED
        self.alone = False
        self.ahead = False
        """Whether it was sent to a worker that still runs the batch before."""
        self.killers = 0
        self.kind = b""
        self.length = 0
        """Digest and length of the body the client sent, for when a later pool of a pipeline has another body.
        See `engine/pools/poison.py`."""
        self.lane = ""
        """Calls of the same lane may share a batch."""
        self.retried = 0
        self.moves = 0
        """How often the machine that ran it was lost."""
        self.chunks = 0
        """How many chunks of a streamed answer have been sent."""
        self.worker = 0
        self.pool_index = 0
        """The index of the pool it is in."""
        self.buffer: SharedBuffer | None = None
        """The shared memory its body lies in, where it is not in `pieces`."""
        self.trail: list[Step] = []
        """The pools it has left, where the package is a pipeline."""

    def take_body(self, body: wire.Buffer, buffer: SharedBuffer | None, size: int) -> bool:
        """Own a body that is complete, in memory or in a buffer; False, and nothing is owned, when it is too large."""
        if not self.quota.take(size, size):
            return False
        self.pieces, self.buffer, self.size = () if buffer is not None else (body,), buffer, size
        return True

    def grow(self, size: int) -> bool:
        """Count bytes that are attached to the body; False when the quota has no space for them."""
        if not self.quota.take(size, self.size + size):
            return False
        self.size += size
        return True

    def recount(self, quota: MemoryQuota) -> bool:
        """Have another quota count the body; False, and none counts it, when that quota has no space for it."""
        # Counted out first: both quotas may be shares of one memory, in which the body would count twice.
        self.quota.used -= self.size
        size, self.size, self.quota = self.size, 0, quota
        return self.grow(size)

    def become(self, body: wire.Buffer, buffer: SharedBuffer | None) -> None:
        """Replace the body by what a pool made of it, for the next pool of the pipeline; it may lie in a buffer."""
        # Never refused: the pool before has done its work, and the call was accepted with its own body.
        self.quota.used += len(body) - self.size
        self.release_buffer()
        # A placed body has no bytes here: they lie in the buffer, and only the worker of the next pool reads them.
        self.pieces, self.size, self.buffer = (), len(body), buffer
        if not isinstance(body, wire.Placed):
            self.pieces = (body,)

    def release(self) -> None:
        """Give back the body, the memory it lies in, and what the quota counts for it. May be called again."""
        # Queues count calls by their size: a call that waits leaves its queue before this.
        self.quota.used -= self.size
        self.size, self.pieces = 0, ()
        if self.buffer is not None:
            self.release_buffer()

    def body(self) -> Sequence[wire.Buffer]:
        """The body in pieces, wherever it lies."""
        return self.pieces if self.buffer is None else self.buffer.body(self.size)

    def copy_out(self) -> None:
        """Have the body out of shared memory."""
        if self.buffer is not None:
            body = b"".join(self.buffer.body(self.size))
            # A body in pieces was counted without those that lie in buffers.
            self.quota.used += len(body) - self.size
            self.pieces, self.size = [body], len(body)
            self.release_buffer()

    def copy_in(self, buffer: SharedBuffer) -> None:
        """Have the body in shared memory, which is large enough for it."""
        at = 0
        for piece in self.pieces:
            buffer.view[at : at + len(piece)] = piece
            at += len(piece)
        self.pieces, self.buffer = (), buffer

    def release_buffer(self) -> None:
        """Give back the shared memory the body lies in, if there is some. Workers that read it own further buffers."""
        if self.buffer is not None:
            self.buffer.release()
            self.buffer = None

    def answered_in(self, buffer: SharedBuffer, size: int) -> wire.Buffer:
        """Own the buffer that its answer lies in; the answer's body."""
        return buffer.exported(size)

    def report(self, progress: CallProgress) -> None:
        """Take a progress report of the script. Only the last one counts; it is not stored here."""

    def printed(self, source: str, text: str) -> None:
        """Take what the script has printed since the last time, to `stdout` or `stderr`, where that is captured."""

    def tell_death(self) -> None:
        """Tell the front that lent this call: a worker died of it, and it runs once more."""

    def reply(self, reply: wire.Reply) -> None:
        """Take the script's answer, or one chunk of it."""
        raise NotImplementedError

    def fail(self, fault: Fault) -> None:
        """Take the answer that the engine gives instead of the script."""
        raise NotImplementedError
