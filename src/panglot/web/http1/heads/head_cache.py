"""Requests with the same head as an earlier one on their connection, byte by byte: it need not be parsed again.

Clients that reuse a connection send the same head time and again. The cache keeps what the first one meant, as long as
the routes are the same; limits and deadlines apply to each request anew.
"""

from __future__ import annotations

from typing import NamedTuple

from panglot.web.access.key_file import Key
from panglot.web.access.keys import KeyHolder
from panglot.web.front import Front
from panglot.web.http1 import admission
from panglot.web.http1.exchange import Exchange
from panglot.web.http1.heads.request_head import RequestHead
from panglot.web.paths import Destination, Paths

HEAD_END = b"\r\n\r\n"
MOST_TRIES = 8
"""How many heads of a connection are cached, one after the other: a client that sends more changes them each time."""


class CachedHead(NamedTuple):
    """A head, and what it means."""

    raw: bytes
    size: int
    """Bytes of the whole request, with its body; of the head alone, where the body is large."""
    head: RequestHead
    destination: Destination
    paths: Paths
    """The routes that were in force."""
    worker_head: bytes
    """What the worker gets of the head, behind the request's id."""
    holder: KeyHolder | None = None
    """The client, where it comes with a key."""
    key: Key | None = None
    """The key as it was; where it has changed since, the head is looked at again."""
    is_large: bool = False
    """Whether the body goes to shared memory, past the parser: the head then comes alone, or before a part of it."""


def raw_head(data: bytes, body: int) -> bytes:
    """The head of a request that is all of `data`, with a body of so many bytes; empty when it is something else."""
    end = len(data) - body
    # The first blank line must be the one before the body: otherwise these bytes are more than one request.
    return data[:end] if data.find(HEAD_END) + len(HEAD_END) == end else b""


def cacheable(
    front: Front, head: RequestHead, method: bytes, exchange: Exchange, data: bytes, is_large: bool
) -> CachedHead | None:
    """What to cache of the head that an exchange was made of; None where the next request must be parsed anyway.

    `data` is what was read of the request: all of it, or all but its large body.
    """
    if head.transfer_encoding or head.foreign or head.expects_continue or (is_large and exchange.buffer is None):
        return None
    if not exchange.keep_alive or exchange.upload is not None or admission.by_session(front, head, method, exchange):
        # By the next request the session may have ended.
        return None
    raw = raw_head(data, 0 if is_large else max(head.content_length, 0))
    path, query = head.target(front.paths.raw)
    destination = front.paths.find(method, path, query, head.headers)
    # Another route: the body named the model, and the next body may name a third.
    if not raw or destination is None or destination.route is not exchange.route:
        return None
    worker_head = head.for_worker(destination, path, query, exchange.connection)
    holder = exchange.holder
    key = holder.key if holder else None
    return CachedHead(raw, len(data), head, destination, front.paths, worker_head, holder, key, is_large)
