"""Messages that clients have compressed. Those with tensors are unfolded by their worker; the front looks at names."""

from __future__ import annotations

import zlib

from panglot.web.grpc_statuses import INTERNAL, RESOURCE_EXHAUSTED, RpcError
from panglot_worker import wire

WINDOWS = {b"gzip": 31, b"deflate": 15}
"""The encodings that are read, as zlib calls them."""
NAMES = 65536
"""Bytes of a message at whose beginning the model is named."""


def beginning(encoding: bytes, body: wire.Buffer) -> bytes:
    """The first bytes of a compressed message. Raises RpcError."""
    try:
        return zlib.decompressobj(WINDOWS[encoding]).decompress(body, NAMES)
    except zlib.error:
        raise RpcError(INTERNAL, f"the message is not {encoding.decode()}, as its grpc-encoding says") from None


def readable(encoding: bytes, body: wire.Buffer) -> wire.Buffer:
    """A message, or the first bytes of one that is compressed; none where it is not what it is said to be."""
    try:
        return beginning(encoding, body) if encoding else body
    except RpcError:
        return b""


def plain(encoding: bytes, body: wire.Buffer) -> bytes:
    """A small message, whether or not it is compressed. Raises RpcError."""
    raw = bytes(body) if not encoding else beginning(encoding, body)
    if encoding and len(raw) == NAMES:
        raise RpcError(RESOURCE_EXHAUSTED, f"a message to this method has at most {NAMES} bytes")
    return raw
