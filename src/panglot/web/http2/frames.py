"""Frames of HTTP/2 (RFC 9113): their kinds, flags and error codes, and how they are written.

An error of a client ends its stream (StreamBroken) or its connection (ConnectionBroken), with a code of the RFC.
"""

from __future__ import annotations

import struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
END_STREAM, ACK, END_HEADERS, PADDED, PRIORITISED = 1, 1, 4, 8, 32
"""Flags. END_STREAM and ACK are one bit, in different kinds of frames."""
NO_ERROR, PROTOCOL_ERROR, INTERNAL_ERROR, FLOW_CONTROL_ERROR, SETTINGS_TIMEOUT, STREAM_CLOSED = range(6)
FRAME_SIZE_ERROR, REFUSED_STREAM, CANCEL, COMPRESSION_ERROR, CONNECT_ERROR, ENHANCE_YOUR_CALM = range(6, 12)
TABLE_SIZE, ENABLE_PUSH, MAX_STREAMS, INITIAL_WINDOW, MAX_FRAME, MAX_HEADERS = range(1, 7)
"""What SETTINGS may set."""

FIRST_WINDOW = 65535
"""Bytes that a side may send on a connection, or on a stream, until SETTINGS or WINDOW_UPDATE say otherwise."""
LARGEST_WINDOW = (1 << 31) - 1
SMALLEST_FRAME, LARGEST_FRAME = 1 << 14, (1 << 24) - 1
"""The least and the most that a side may set as its largest frame."""
EVERY_STREAM = LARGEST_WINDOW
"""The last stream of a GOAWAY that refuses none yet."""

HEADER = struct.Struct(">HBBBI")
HEADER_SIZE = HEADER.size
number = struct.Struct(">I").pack
pair = struct.Struct(">II").pack
entry = struct.Struct(">HI").pack
entries = struct.Struct(">HI").iter_unpack


class Broken(Exception):
    """The client did what the RFC does not allow, or too much of what it does."""

    def __init__(self, code: int, why: str) -> None:
        super().__init__(why)
        self.code = code
        self.why = why


class ConnectionBroken(Broken):
    """The whole connection ends."""


class StreamBroken(Broken):
    """One stream ends."""


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return header(len(payload), kind, flags, stream) + payload


def header(size: int, kind: int, flags: int, stream: int) -> bytes:
    # The size has 24 bits, for which `struct` has no letter.
    return HEADER.pack(size >> 8, size & 255, kind, flags, stream)


def reset(stream: int, code: int) -> bytes:
    return frame(RST_STREAM, 0, stream, number(code))


def window_update(stream: int, more: int) -> bytes:
    return frame(WINDOW_UPDATE, 0, stream, number(more))


def go_away(last: int, code: int, why: str = "") -> bytes:
    return frame(GOAWAY, 0, 0, pair(last, code) + why.encode("ascii", "replace"))


def unpadded(flags: int, payload: bytes) -> bytes:
    """The block of a HEADERS frame, without padding and priority. Raises ConnectionBroken."""
    start, end = 0, len(payload)
    if flags & PADDED:
        start, end = 1, end - (payload[0] if payload else 0)
    if flags & PRIORITISED:
        start += 5
    if start > end or (flags & PADDED and not payload):
        raise ConnectionBroken(PROTOCOL_ERROR, "padding is longer than its frame")
    return payload[start:end]
