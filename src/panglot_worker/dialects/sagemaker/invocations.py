"""Reads requests for a script: the body, its type, and the type that the client accepts."""

from __future__ import annotations

from typing import Dict, NamedTuple

from panglot_worker.compat.model_context import header_pairs
from panglot_worker.dialects.base import Request
from panglot_worker.dialects.sagemaker.answers import Refused
from panglot_worker.net.fetched import Buffer, Fetching, NotFetched, split

ASYNC = b"/async-invocations"
"""The route of asynchronous inference, as the front half names it."""
NO_DASH = b"contenttype:"
"""A header that the toolkits read too, and that wins in the older one."""
PREFIX = "X-Amzn-Sagemaker-"
LOCATION = PREFIX + "Inputlocation"


class Invocation(NamedTuple):
    """A request as the platform hands it to a container."""

    body: Buffer
    content_type: str
    """Empty where there is none."""


def read(request: Request) -> Invocation:
    """The body and its type. Raises Refused, and Fetching where the front must fetch the body first."""
    head = request.head
    if head.route == ASYNC:
        return _located(request)
    kind = head.content_type.decode("latin-1")
    if NO_DASH in head.headers:
        kind = {name.lower(): value for name, value in header_pairs(head.headers)}.get("contenttype", kind)
    return Invocation(request.body, kind)


def accept(request: Request) -> str:
    """The type that the client accepts; empty where it names none."""
    head = request.head
    if head.route == ASYNC:
        return _headers(request).get(PREFIX + "Accept", "")
    return head.accept.decode("latin-1")


def _located(request: Request) -> Invocation:
    """The input of an asynchronous inference: the content of its location, or the body where it names none."""
    head, headers = request.head, _headers(request)
    kind = headers.get(PREFIX + "Content-Type") or head.content_type.decode("latin-1")
    location = headers.get(LOCATION)
    if not location:
        return Invocation(request.body, kind)
    # The front fetches the address, and runs the item again with the content behind its body.
    if not head.fetched:
        raise Fetching([location])
    (part,) = split(head.fetched, memoryview(request.body))[1]
    if isinstance(part, NotFetched):
        raise Refused(ValueError("InputLocation cannot be read: %s" % (part.text or "it leads nowhere")))
    return Invocation(part, kind)


def _headers(request: Request) -> Dict[str, str]:
    return dict(header_pairs(request.head.headers))
