"""The messages that come on one call, put together from its DATA frames. The inbox owns all of them."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from panglot.web.front import Front
from panglot.web.grpc.call import announced
from panglot.web.grpc.prefix import PREFIX
from panglot.web.grpc.received_message import SMALL, ReceivedMessage
from panglot.web.grpc.statuses import INTERNAL, RESOURCE_EXHAUSTED, UNIMPLEMENTED, Refusal, RpcError
from panglot.web.limits.quota import ByteQuota
from panglot_worker.line import wire

if TYPE_CHECKING:
    from panglot.web.grpc.services import Service
    from panglot.web.models import Model

MOST_WAITING = 64
"""Messages of a stream that wait to be taken. What comes behind them stays unparsed: an empty message is five bytes on
the wire, and a hundred times as much as an object."""
PIECE = 16384
"""Unparsed bytes that are parsed at once."""
ONE_MESSAGE = Refusal(UNIMPLEMENTED, "this method takes one message")
NOT_PACKED = Refusal(INTERNAL, "a message is compressed, and no grpc-encoding says how")


class Inbox:
    """Makes messages of the bytes of one call, and hands them out one by one.

    Whatever becomes of the call, `close` gives back what is left of all of them.
    """

    __slots__ = (
        "_announces",
        "_encoding",
        "_for_model",
        "_front",
        "_many",
        "_most",
        "_part",
        "_prefix",
        "_quota",
        "_taken",
        "_unparsed",
        "_waiting",
        "is_closed",
    )  # fmt: skip

    def __init__(self, front: Front, service: Service, encoding: bytes, quota: ByteQuota) -> None:
        self._front = front
        self._for_model = service.infers
        self._announces = service.infers and service.native is None
        """Whether the first bytes of a message tell its model, so that it is read into that model's memory."""
        self._many = service.answer_stream is not None
        self._most = front.quota.largest_body if service.infers else SMALL
        self._encoding = encoding
        self._quota = quota
        self._prefix = b""
        self._part: ReceivedMessage | None = None
        """The message that has begun to come."""
        self._waiting: deque[ReceivedMessage] = deque()
        self._taken: ReceivedMessage | None = None
        """The message that was handed out last; released when the next one is taken."""
        self._unparsed = bytearray()
        self.is_closed = False

    # Coming

    def feed(self, data: wire.Buffer) -> int:
        """Add the next bytes; returns how many messages they completed. Raises RpcError for a refused message."""
        # Older bytes wait: parsing these first would change the order of the messages.
        if self._unparsed:
            self._store_unparsed(data)
            return 0
        before = len(self._waiting)
        used = self._read(data)
        if used < len(data):
            self._store_unparsed(data[used:])
        return len(self._waiting) - before

    def _store_unparsed(self, data: wire.Buffer) -> None:
        self._unparsed += data
        self._front.quota.used += len(data)

    def _read(self, data: wire.Buffer) -> int:
        """Parse messages out of these bytes, until enough of them wait; returns how many bytes that took."""
        at, end = 0, len(data)
        while at < end and len(self._waiting) < MOST_WAITING:
            if self._part is not None:
                at += self._fill(self._part, data[at:])
                continue
            if not self._many and (self._waiting or self._taken is not None):
                raise ONE_MESSAGE.error()
            if self._prefix or end - at < PREFIX.size:
                more = PREFIX.size - len(self._prefix)
                self._prefix += bytes(data[at : at + more])
                if len(self._prefix) < PREFIX.size:
                    return end
                at += more
                packed, size = PREFIX.unpack(self._prefix)
                self._prefix = b""
            else:
                packed, size = PREFIX.unpack_from(data, at)
                at += PREFIX.size
            message = self._new_message(packed, size)
            if end - at >= size:
                # A copy: `data` may be a view of the memory that all connections read to.
                message.fill_whole(bytes(data[at : at + size]))
                self._waiting.append(message)
                at += size
            else:
                # Before `allocate`, which may raise: `close` then releases whatever the message has got.
                self._part = message
                message.allocate(self._model(data[at:]) if self._announces and not packed else None)
        return at

    def _new_message(self, packed: int, size: int) -> ReceivedMessage:
        """A message of which only the prefix has come. Raises RpcError."""
        if size > self._most:
            limit = "max_body, " if self._for_model else ""
            raise RpcError(RESOURCE_EXHAUSTED, f"the message is larger than {limit}{self._most} bytes")
        if packed and (packed > 1 or not self._encoding):
            raise NOT_PACKED.error()
        return ReceivedMessage(self._quota, size, self._encoding if packed else b"")

    def _model(self, first: wire.Buffer) -> Model | None:
        """The model that the first bytes of an inference name; None where they do not tell. Raises RpcError."""
        try:
            return announced(self._front, first)
        except RpcError:
            if self._many:
                # It is one inference of many: it is refused alone, once it has come.
                return None
            raise

    def _fill(self, part: ReceivedMessage, data: wire.Buffer) -> int:
        count = part.fill(data)
        if part.is_whole:
            self._part = None
            self._waiting.append(part)
        return count

    @property
    def is_within(self) -> bool:
        """Whether a message has begun to come, and not ended."""
        return self._part is not None or bool(self._prefix)

    @property
    def has_more(self) -> bool:
        """Whether messages that have come wait to be taken: their client is ahead of what answers it."""
        return bool(self._waiting) or bool(self._unparsed)

    @property
    def arrived(self) -> int:
        """Bytes that have come of the message that is coming."""
        return self._part.arrived if self._part is not None else 0

    @property
    def model(self) -> Model | None:
        """The model of the message that is coming; None while it is not known."""
        return self._part.model if self._part is not None else None

    # Taking

    def take(self) -> ReceivedMessage | None:
        """The next message that has come whole. The inbox owns it until it gives out the next one, or closes.

        Raises RpcError where what comes behind it is no message.
        """
        if self._taken is not None:
            self._taken.release()
        self._taken = self._waiting.popleft() if self._waiting else None
        if self._unparsed and not self._waiting:
            self._catch_up()
        return self._taken

    def _catch_up(self) -> None:
        """Parse the next messages of the unparsed bytes."""
        while self._unparsed and len(self._waiting) < MOST_WAITING:
            used = self._read(bytes(self._unparsed[:PIECE]))
            del self._unparsed[:used]
            self._front.quota.used -= used

    def close(self) -> None:
        """Release all messages, and take no further bytes. May be called again."""
        self.is_closed = True
        self._prefix = b""
        if self._taken is not None:
            self._taken.release()
            self._taken = None
        if self._part is not None:
            self._part.release()
            self._part = None
        while self._waiting:
            self._waiting.popleft().release()
        if self._unparsed:
            self._front.quota.used -= len(self._unparsed)
            self._unparsed.clear()
