"""Reading of headers that HPACK (RFC 7541) has compressed.

Our own, because clients of gRPC send the same few fields with every call; only some, such as a trace or a deadline,
differ. Eight fields take 3 microseconds here, and 20 in the library `hpack`. A test compares the two.

The decoder enforces the limit on decoded headers: `call_head` says which other modules know a limit.
"""

from __future__ import annotations

from collections import deque

from panglot.web.http2.frames import COMPRESSION_ERROR, ENHANCE_YOUR_CALM, ConnectionBroken
from panglot.web.http2.headers import huffman

Field = tuple[bytes, bytes]
TABLE = 4096
"""Bytes of fields that a client may have us remember; what both sides begin with."""
OVERHEAD = 32
"""What a field counts for besides its bytes."""
MOST_FIELDS = 4096
"""Fields of one block, with those beyond `most` bytes, which are read only to keep the table the same."""
STATIC: tuple[Field, ...] = tuple(
    (name.encode(), value.encode())
    for name, _, value in (
        line.partition(" ")
        for line in """
:authority
:method GET
:method POST
:path /
:path /index.html
:scheme http
:scheme https
:status 200
:status 204
:status 206
:status 304
:status 400
:status 404
:status 500
accept-charset
accept-encoding gzip, deflate
accept-language
accept-ranges
accept
access-control-allow-origin
age
allow
authorization
cache-control
content-disposition
content-encoding
content-language
content-length
content-location
content-range
content-type
cookie
date
etag
expect
expires
from
host
if-match
if-modified-since
if-none-match
if-range
if-unmodified-since
last-modified
link
location
max-forwards
proxy-authenticate
proxy-authorization
range
referer
refresh
retry-after
server
set-cookie
strict-transport-security
transfer-encoding
user-agent
vary
via
www-authenticate
""".strip().split("\n")
    )
)


class HpackDecoder:
    """The fields of one connection's header blocks, and the table that they refer to."""

    def __init__(self, most: int) -> None:
        self.most = most
        """Bytes that the fields of one block may have."""
        self.generation = 0
        """Changes with the table: until then the same block means the same."""
        self._table: deque[Field] = deque()
        self._size = 0
        self._limit = TABLE

    def decode(self, block: bytes) -> list[Field] | None:
        """The fields of a block; None where they are too many bytes. Raises ConnectionBroken."""
        try:
            return self._decode(block)
        except (IndexError, ValueError) as error:
            # The table may now differ from the client's. No later block can be trusted, so the connection ends.
            raise ConnectionBroken(COMPRESSION_ERROR, "a header block cannot be read") from error

    def _decode(self, block: bytes) -> list[Field] | None:
        fields: list[Field] = []
        at, end, size, count = 0, len(block), 0, 0
        while at < end:
            first = block[at]
            if first & 0x80:
                index, at = _integer(block, at, 0x7F)
                field = self._field(index)
            elif first & 0x40:
                field, at = self._literal(block, at, 0x3F)
                self._remember(field)
            elif first & 0x20:
                limit, at = _integer(block, at, 0x1F)
                # RFC 7541, 4.2: the table changes its size only at the beginning of a block, within our limit.
                if fields or limit > TABLE:
                    raise ValueError("the table cannot be resized so")
                self._resize(limit)
                continue
            else:
                field, at = self._literal(block, at, 0x0F)
            count += 1
            # One byte can stand for a field of thousands: this bounds the time that a small block takes.
            if count > MOST_FIELDS:
                raise ConnectionBroken(ENHANCE_YOUR_CALM, "a header block has too many fields")
            size += len(field[0]) + len(field[1]) + OVERHEAD
            # What is too much is still read: the table must stay the same on both sides.
            if size <= self.most:
                fields.append(field)
        return fields if size <= self.most else None

    def _field(self, index: int) -> Field:
        if not index:
            raise IndexError("there is no field 0")
        return STATIC[index - 1] if index <= len(STATIC) else self._table[index - 1 - len(STATIC)]

    def _literal(self, block: bytes, at: int, mask: int) -> tuple[Field, int]:
        index, at = _integer(block, at, mask)
        if index:
            name = self._field(index)[0]
        else:
            name, at = _text(block, at)
        value, at = _text(block, at)
        return (name, value), at

    def _remember(self, field: Field) -> None:
        self.generation += 1
        self._table.appendleft(field)
        self._size += len(field[0]) + len(field[1]) + OVERHEAD
        # RFC 7541, 4.4: a field larger than the table empties it, itself included. That is no error.
        self._shrink()

    def _resize(self, limit: int) -> None:
        self.generation += 1
        self._limit = limit
        self._shrink()

    def _shrink(self) -> None:
        while self._size > self._limit:
            name, value = self._table.pop()
            self._size -= len(name) + len(value) + OVERHEAD


def _integer(block: bytes, at: int, mask: int) -> tuple[int, int]:
    """A number, and where what follows begins. Raises ValueError, or IndexError at the end."""
    number = block[at] & mask
    at += 1
    if number < mask:
        return number, at
    # No size here needs more bytes, and an endless number would cost time.
    for shift in (0, 7, 14, 21):
        byte = block[at]
        at += 1
        number += (byte & 127) << shift
        if byte < 128:
            return number, at
    raise ValueError("a number is too large")


def _text(block: bytes, at: int) -> tuple[bytes, int]:
    packed = block[at] & 0x80
    size, at = _integer(block, at, 0x7F)
    text = block[at : at + size]
    # A slice beyond the end is shorter, and raises nothing.
    if len(text) < size:
        raise IndexError("a text is cut off")
    return huffman.decode(text) if packed else text, at + size
