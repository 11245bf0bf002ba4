"""Messages of gRPC, put together from the DATA frames of a stream. Large ones are read into shared memory."""

from __future__ import annotations

import mmap
from collections.abc import Callable
from typing import NamedTuple

from panglot.web.front import Front
from panglot.web.grpc_call import NO_ROOM, Landing, announced
from panglot.web.grpc_statuses import INTERNAL, RESOURCE_EXHAUSTED, RpcError, refused
from panglot.web.http2.answers import MESSAGE
from panglot.web.models import Model
from panglot.web.room import Bytes
from panglot_worker import wire

SMALL = 65536
"""Bytes of a message that find their room as soon as it is announced; of larger ones what has come is counted."""


class WholeMessage(NamedTuple):
    """A message that has come whole."""

    body: wire.Buffer
    packed: bool = False
    """Whether it is compressed."""
    landing: Landing | None = None


class MessageReader:
    """Reads the messages of one stream, one after the other, and hands each to `take`."""

    __slots__ = (
        "_at",
        "_packed",
        "_prefix",
        "_room",
        "_size",
        "_taken",
        "_view",
        "front",
        "landing",
        "lands",
        "may_pack", "model",
        "most",
        "take",
    )  # fmt: skip

    def __init__(self, front: Front, take: Callable[[WholeMessage], None], may_pack: bool, lands: bool) -> None:
        self.front = front
        self.take = take
        self.may_pack = may_pack
        self.lands = lands
        """Whether these are messages with tensors, for models."""
        self.most = front.room.largest_body if lands else SMALL
        self.landing: Landing | None = None
        self.model: Model | None = None
        """The model that the present message is for, once that is known."""
        self._prefix = b""
        self._view: memoryview | None = None
        """Where the message goes that has begun to come; None while none has."""
        self._size = self._at = self._taken = 0
        self._packed = False
        self._room: Bytes = front.room

    @property
    def is_within(self) -> bool:
        """Whether a message has begun to come, and not ended."""
        return self._view is not None or bool(self._prefix)

    @property
    def arrived(self) -> int:
        """Bytes that have come of the present message."""
        return self._at

    def feed(self, data: wire.Buffer) -> None:
        """Take in the next bytes. Raises RpcError for a message that cannot be taken."""
        at, end = 0, len(data)
        while at < end:
            if self._view is not None:
                at += self._fill(data[at:])
                continue
            if self._prefix or end - at < MESSAGE.size:
                more = MESSAGE.size - len(self._prefix)
                self._prefix += bytes(data[at : at + more])
                at += more
                if len(self._prefix) < MESSAGE.size:
                    return
                packed, size = MESSAGE.unpack(self._prefix)
                self._prefix = b""
            else:
                packed, size = MESSAGE.unpack_from(data, at)
                at += MESSAGE.size
            self._check(packed, size)
            if end - at >= size:
                self.take(WholeMessage(bytes(data[at : at + size]), bool(packed)))
                at += size
            else:
                self._begin(bool(packed), size, data[at:])

    def _check(self, packed: int, size: int) -> None:
        if size > self.most:
            limit = "max_body, " if self.lands else ""
            raise RpcError(RESOURCE_EXHAUSTED, f"the message is larger than {limit}{self.most} bytes")
        if packed > 1 or (packed and not self.may_pack):
            raise RpcError(INTERNAL, "a message is compressed, and no grpc-encoding says how")

    def _begin(self, packed: bool, size: int, first: wire.Buffer) -> None:
        """Find a place for a message of which only some has come."""
        self._packed, self._size, self._at = packed, size, 0
        self.model = model = announced(self.front, first) if self.lands and not packed else None
        self._room = model.room if model is not None else self.front.room
        if not self._room.fits(size):
            raise refused(NO_ROOM)
        if size <= SMALL:
            self._count(size)
            self._view = memoryview(bytearray(size))
            return
        berth = model.engine.berth(size) if model is not None and model.settings.share_from > 0 else None
        if model is not None and berth is not None:
            self.landing = Landing(model, berth)
            self._view = berth.view[:size]
        else:
            # Its pages come when they are written, so that what a client only announces costs nothing.
            self._view = memoryview(mmap.mmap(-1, size))

    def _fill(self, data: wire.Buffer) -> int:
        """Add bytes to the message, and hand it on once it is whole; how many were taken."""
        view = self._view
        assert view is not None
        count = min(len(data), self._size - self._at)
        if self._size > SMALL:
            self._count(count)
        view[self._at : self._at + count] = data[:count]
        self._at += count
        if self._at == self._size:
            message = WholeMessage(view, self._packed, self.landing)
            self.landing = None
            self.drop()
            self.take(message)
        return count

    def _count(self, size: int) -> None:
        if not self._room.take(size, self._taken + size):
            raise refused(NO_ROOM)
        self._taken += size

    def drop(self) -> None:
        """Let go of a message, and of the room it takes: it has come whole, or never will."""
        self._room.held -= self._taken
        self._taken, self._view, self._prefix, self.model = 0, None, b"", None
        if self.landing is not None:
            self.landing.berth.drop()
            self.landing = None
