"""One message of a client, and the memory it is in."""

from __future__ import annotations

import mmap

from panglot.engine.call import Fault, SharedBuffer
from panglot.web.grpc import messages
from panglot.web.grpc.encoding import beginning, plain
from panglot.web.grpc.messages import Addressed
from panglot.web.grpc.statuses import INVALID_ARGUMENT, Refusal, RpcError, refused
from panglot.web.limits.quota import ByteQuota
from panglot.web.models import Model
from panglot_worker.line import wire

NO_MEMORY = Fault(503, "memory", "the server holds too many request bodies; try again later", 1)
SMALL = 65536
"""Bytes up to which a message is counted whole as soon as it is announced; larger ones are counted as they come."""
NO_INFERENCE = Refusal(INVALID_ARGUMENT, "the message is no ModelInferRequest")
NO_NAME = Refusal(
    INVALID_ARGUMENT, f"model_name is not in the first {messages.NAMES} bytes of the message: send it first"
)


class ReceivedMessage:
    """A message from its first byte on: the memory it is in, and the bytes that its quota counts.

    It has one owner, the inbox of its call, which releases it when the call ends, whatever became of it until then.
    An inference takes the memory by `hand_over`: from then on the engine's call owns it, and `release` does nothing.
    """

    __slots__ = ("_addressed", "_at", "_buffer", "_counted", "_quota", "_view", "encoding", "model", "size")

    def __init__(self, quota: ByteQuota, size: int, encoding: bytes) -> None:
        self.size = size
        self.encoding = encoding
        """How it is compressed; empty: it is not."""
        self.model: Model | None = None
        """The model that gave it memory and counts it."""
        self._quota = quota
        self._counted = self._at = 0
        self._view: wire.Buffer = b""
        self._buffer: SharedBuffer | None = None
        self._addressed: Addressed | None = None

    # Coming

    def fill_whole(self, body: bytes) -> None:
        """Take in all of it at once."""
        self._view, self._at = body, self.size
        # Counted without asking: the bytes are here already.
        self._quota.used += self.size
        self._counted = self.size

    def allocate(self, model: Model | None) -> None:
        """Find memory for a message that has begun to come, its model's where that is known. Raises RpcError."""
        if model is not None:
            self.model, self._quota = model, model.quota
        # By the announced size, before anything is stored. What really comes is counted in `fill`.
        if not self._quota.fits(self.size):
            raise refused(NO_MEMORY)
        if self.size <= SMALL:
            self._count(self.size)
            self._view = memoryview(bytearray(self.size))
            return
        if model is not None and model.settings.share_from > 0:
            self._buffer = model.engine.buffer(self.size)
        if self._buffer is not None:
            self._view = self._buffer.view[: self.size]
        else:
            # Its pages come when they are written, so that what a client only announces costs nothing.
            self._view = memoryview(mmap.mmap(-1, self.size))

    def fill(self, data: wire.Buffer) -> int:
        """Add its next bytes; returns how many of them it needed. Raises RpcError where the quota has no space."""
        count = min(len(data), self.size - self._at)
        if self.size > SMALL:
            self._count(count)
        view = self._view
        assert isinstance(view, memoryview)
        view[self._at : self._at + count] = data[:count]
        self._at += count
        return count

    def _count(self, size: int) -> None:
        if not self._quota.take(size, self._counted + size):
            raise refused(NO_MEMORY)
        self._counted += size

    @property
    def arrived(self) -> int:
        """How many of its bytes have come."""
        return self._at

    @property
    def is_whole(self) -> bool:
        return self._at == self.size

    # Reading

    def plain(self) -> bytes:
        """All of it, for the front itself to read. Raises RpcError."""
        return plain(self.encoding, self._view)

    @property
    def view(self) -> wire.Buffer:
        """Its bytes, as far as they have come."""
        return self._view

    def unfold(self) -> None:
        """Have its bytes as they were before its client compressed them. Raises RpcError, also for a large one."""
        if self.encoding:
            unfolded = self.plain()
            self.release()
            self.encoding, self.size = b"", len(unfolded)
            self.fill_whole(unfolded)

    def addressed(self) -> Addressed:
        """The model and the id that it names, if it is an inference. Raises RpcError."""
        if self._addressed is None:
            try:
                if self.encoding:
                    self._addressed = messages.addressed(beginning(self.encoding, self._view), is_cut=True)
                else:
                    self._addressed = messages.addressed(self._view)
            except ValueError:
                raise NO_INFERENCE.error() from None
        return self._addressed

    @property
    def request_id(self) -> str:
        """The id that the client gave this inference; nothing where it cannot be read."""
        try:
            return self.addressed().request_id
        except RpcError:
            return ""

    # Ending

    def contents(self) -> tuple[wire.Buffer, SharedBuffer | None]:
        """Its bytes, and the buffer they are in, if there is one."""
        return self._view, self._buffer

    def hand_over(self) -> None:
        """Let go of the contents: a call owns and counts them now."""
        self._view, self._buffer = b"", None

    def release(self) -> None:
        """Give its memory and its quota back, unless a call owns them now. May be called again."""
        if self._counted:
            self.release_quota()
        self._view = b""
        if self._buffer is not None:
            self._buffer.release()
            self._buffer = None

    # The last net: a message that no owner released costs neither memory nor quota.
    __del__ = release

    def release_quota(self) -> None:
        """Stop counting it, because its call counts it now, or it is released."""
        if self._counted:
            self._quota.used -= self._counted
            self._counted = 0
