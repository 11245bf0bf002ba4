"""Messages that clients have compressed. Those with tensors are unfolded by their worker; the front looks at names."""

from __future__ import annotations

import zlib

from panglot.web.grpc.messages import NAMES
from panglot.web.grpc.statuses import INTERNAL, RESOURCE_EXHAUSTED, RpcError
from panglot_worker.line import wire

WINDOWS = {b"gzip": 31, b"deflate": 15}
"""The encodings that are read, as zlib calls them."""


def beginning(encoding: bytes, body: wire.Buffer) -> bytes:
    """The first bytes of a compressed message. Raises RpcError."""
    try:
        # Only its own first bytes are handed over: zlib copies whatever it does not use.
        return zlib.decompressobj(WINDOWS[encoding]).decompress(memoryview(body)[:NAMES], NAMES)
    except zlib.error:
        raise RpcError(INTERNAL, f"the message is not {encoding.decode()}, as its grpc-encoding says") from None


def plain(encoding: bytes, body: wire.Buffer) -> bytes:
    """A small message, whether or not it is compressed. Raises RpcError."""
    if not encoding:
        return bytes(body)
    raw = beginning(encoding, body)
    # As much as was asked for: there may be more.
    if len(raw) == NAMES:
        raise RpcError(RESOURCE_EXHAUSTED, f"a message to this method has at most {NAMES} bytes")
    return raw
