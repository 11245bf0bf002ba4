"""What a script may ask about the requests it is working on."""

from __future__ import annotations

from typing import List, NamedTuple

from panglot_worker.dialects.base import Request

# Of this module, since scripts ask `panglot_worker.requests()` and have no object of ours to ask instead.
running: List[Request] = []
"""The requests of the call in progress. Only whoever runs calls (`running`, `splitting`) writes to it."""


class RequestInfo(NamedTuple):
    """`traceparent` is the W3C trace context the client sent, or empty."""

    id: str
    traceparent: str


def requests() -> List[RequestInfo]:
    """The requests of the call in progress: one, or those of the batch, in order. For logs and traces."""
    return [
        RequestInfo(request.head.request_id.decode("latin-1"), request.head.traceparent.decode("latin-1"))
        for request in running
    ]
