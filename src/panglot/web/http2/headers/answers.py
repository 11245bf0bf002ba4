"""The header blocks of answers, as bytes that no table changes."""

from __future__ import annotations

from panglot.web.http2.frames import END_HEADERS, END_STREAM, HEADERS, frame

LONGEST_SENTENCE = 1024
"""Bytes of a sentence in an answer: clients limit the size of headers."""
PLAIN = frozenset(range(0x20, 0x7F)) - {ord("%")}


def literal(name: bytes, value: bytes) -> bytes:
    """A field that neither side remembers."""
    return b"\0" + _text(name) + _text(value)


def _text(raw: bytes) -> bytes:
    """A text with its length before it, without a Huffman code (RFC 7541, 5.2)."""
    size = len(raw)
    if size < 127:
        return bytes((size,)) + raw
    rest, length = size - 127, bytearray(b"\x7f")
    while rest > 127:
        length.append(rest & 127 | 128)
        rest >>= 7
    length.append(rest)
    return bytes(length) + raw


# 0x88 is `:status 200`, the eighth field of the static table.
OK = b"\x88" + literal(b"content-type", b"application/grpc")
OPENING = OK + literal(b"grpc-accept-encoding", b"identity, deflate, gzip")
"""The headers of an answer with messages."""
DONE = literal(b"grpc-status", b"0")
OPENING_START = frame(HEADERS, END_HEADERS, 0, OPENING)[:5]
DONE_START = frame(HEADERS, END_HEADERS | END_STREAM, 0, DONE)[:5]
"""Their frames, up to where the number of the stream stands."""


def opening(stream: int) -> bytes:
    return frame(HEADERS, END_HEADERS, stream, OPENING)


def ending(stream: int, code: int, sentence: str, opened: bool) -> bytes:
    """The last headers of an answer. Where it has not been opened, they hold the first ones too."""
    block = DONE if not code else literal(b"grpc-status", b"%d" % code)
    if sentence:
        block += literal(b"grpc-message", percent_encoded(sentence))
    return frame(HEADERS, END_HEADERS | END_STREAM, stream, block if opened else OPENING + block)


def no_grpc(stream: int, status: int) -> bytes:
    """The answer to what is no call of gRPC."""
    block = literal(b":status", b"%d" % status) + literal(b"content-length", b"0")
    return frame(HEADERS, END_HEADERS | END_STREAM, stream, block)


def percent_encoded(sentence: str) -> bytes:
    """A sentence as `grpc-message` carries it; of a long one the beginning."""
    raw = sentence.encode("utf-8", "replace")[:LONGEST_SENTENCE]
    return b"".join(bytes((byte,)) if byte in PLAIN else b"%%%02X" % byte for byte in raw)
