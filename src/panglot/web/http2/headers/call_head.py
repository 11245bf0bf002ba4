"""The headers of a call: their meaning, and the rules that they must keep.

The limit on their size, `max_headers`, is enforced in three modules. `frame_reader` counts the bytes of a header block
while its frames arrive. `hpack` counts the decoded fields, which may be many times as long. A call with too many of
them has `CallHead.too_large`, and `calls` refuses it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from panglot.web.http2.frames import PROTOCOL_ERROR, StreamBroken
from panglot.web.http2.headers.hpack import Field, HpackDecoder

PSEUDO = (b":method", b":scheme", b":authority", b":path")
NEEDED = (b":method", b":scheme", b":path")
OF_CONNECTIONS = (b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade")
"""Fields of HTTP/1.1 that HTTP/2 does not allow."""
NAME = re.compile(rb"[!#$%&'*+\-.^_`|~0-9a-z]+")
VALUE = re.compile(rb"(?:[^\0\r\n \t](?:[^\0\r\n]*[^\0\r\n \t])?)?")
TIMEOUT = re.compile(rb"([0-9]{1,8})([HMSmun])")
UNITS = {b"H": 3600.0, b"M": 60.0, b"S": 1.0, b"m": 1e-3, b"u": 1e-6, b"n": 1e-9}
KNOWN = 64
"""How many header blocks a connection remembers."""


class CallHead(NamedTuple):
    """The headers of a call, as far as they matter."""

    method: bytes = b""
    path: str = ""
    content_type: bytes = b""
    seconds: float | None = None
    """Until its deadline; None: it has none."""
    authorization: bytes = b""
    request_id: bytes = b""
    trace: bytes = b""
    encoding: bytes = b""
    """How its messages may be compressed."""
    bad_timeout: bool = False
    too_large: bool = False


class CallHeads:
    """Reads the header blocks of one connection. A block that leaves the table alone can be remembered."""

    def __init__(self, most: int) -> None:
        self._decoder = HpackDecoder(most)
        self._known: dict[bytes, CallHead] = {}

    def read(self, block: bytes) -> CallHead:
        """The head of a call. Raises ConnectionBroken, or StreamBroken where it is malformed."""
        # Not decoded again: only blocks that leave the table as it is are remembered.
        head = self._known.get(block)
        return head if head is not None else self._read(block)

    def skip(self, block: bytes) -> None:
        """Decode a block that no call needs, for the sake of the table. Raises ConnectionBroken."""
        self._fields(block)

    def trailers(self, block: bytes) -> None:
        """Take in what follows the messages of a call. Raises ConnectionBroken or StreamBroken."""
        fields = self._fields(block)
        if any(not NAME.fullmatch(name) or not VALUE.fullmatch(value) for name, value in fields or ()):
            raise StreamBroken(PROTOCOL_ERROR, "trailers are malformed")

    def _fields(self, block: bytes) -> list[Field] | None:
        generation = self._decoder.generation
        fields = self._decoder.decode(block)
        if self._decoder.generation != generation:
            # Fields have other numbers in the changed table: the same bytes may now mean something else.
            self._known.clear()
        return fields

    def _read(self, block: bytes) -> CallHead:
        generation = self._decoder.generation
        fields = self._fields(block)
        if fields is None:
            return CallHead(too_large=True)
        check(fields)
        head = understood(dict(fields))
        if self._decoder.generation == generation and len(self._known) < KNOWN:
            self._known[block] = head
        return head


def check(fields: list[Field]) -> None:
    """Hold the fields of a request against the rules of RFC 9113, section 8. Raises StreamBroken."""
    pseudo: set[bytes] = set()
    regular = False
    for name, value in fields:
        if name.startswith(b":"):
            if regular or name in pseudo or name not in PSEUDO:
                raise StreamBroken(PROTOCOL_ERROR, "a request has wrong pseudo-header fields")
            pseudo.add(name)
        else:
            regular = True
            if name in OF_CONNECTIONS or (name == b"te" and value.lower() != b"trailers"):
                raise StreamBroken(PROTOCOL_ERROR, "a header belongs to HTTP/1.1")
            if not NAME.fullmatch(name):
                raise StreamBroken(PROTOCOL_ERROR, "the name of a header is malformed")
        if not VALUE.fullmatch(value):
            raise StreamBroken(PROTOCOL_ERROR, "the value of a header is malformed")
    if not pseudo.issuperset(NEEDED):
        raise StreamBroken(PROTOCOL_ERROR, "a request lacks pseudo-header fields")


def understood(fields: dict[bytes, bytes]) -> CallHead:
    """The head that these fields are."""
    given = fields.get(b"grpc-timeout")
    timeout = TIMEOUT.fullmatch(given) if given is not None else None
    return CallHead(
        fields[b":method"],
        fields[b":path"].decode("latin-1"),
        fields.get(b"content-type", b""),
        int(timeout[1]) * UNITS[timeout[2]] if timeout is not None else None,
        fields.get(b"authorization", b""),
        fields.get(b"x-request-id", b""),
        fields.get(b"traceparent", b""),
        fields.get(b"grpc-encoding", b"identity"),
        given is not None and timeout is None,
    )
