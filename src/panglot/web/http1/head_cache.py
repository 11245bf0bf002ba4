"""Requests whose head is, byte by byte, that of an earlier one on their connection: nothing of it need be parsed again.

Clients that keep a connection send the same head time and again. What came of the first is kept, as long as the routes
are the same ones; limits and deadlines apply to each request anew.
"""

from __future__ import annotations

from typing import NamedTuple

from panglot.web.http1.head import RequestHead
from panglot.web.paths import Destination, Paths

HEAD_END = b"\r\n\r\n"


class CachedHead(NamedTuple):
    """A head, and what it means."""

    raw: bytes
    size: int
    """Bytes of the whole request, with its body."""
    head: RequestHead
    destination: Destination
    paths: Paths
    """The routes that were in force."""
    told: bytes
    """What the worker is told of it, behind the request's id."""


def raw_head(data: bytes, body: int) -> bytes:
    """The head of a request that is all of `data`, with a body of so many bytes; empty when it is something else."""
    end = len(data) - body
    return data[:end] if data.find(HEAD_END) + len(HEAD_END) == end else b""
