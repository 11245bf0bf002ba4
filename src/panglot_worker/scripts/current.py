"""The requests that a script works on, as it may see them."""

from __future__ import annotations

import time
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any, Dict, List, Mapping, Sequence, Tuple
from urllib.parse import parse_qsl

from panglot_worker.dialects.base import Request

# State of this module, because scripts call `panglot.request()` without any object of a worker.
running: List[Request] = []
"""The requests of the call in progress. Only code that runs calls writes to it: in `items`, and in some dialects."""
in_task: "ContextVar[Tuple[Request, ...]]" = ContextVar("in_task", default=())
"""The request of a task, where a script has several calls in progress; `items.concurrent` sets it."""
together: "ContextVar[bool]" = ContextVar("together", default=False)
"""Whether the call in progress is of a function that takes batches."""


class RequestInfo:
    """What a script may know about a request. It comes from the client, so do not trust it; nothing can be changed."""

    __slots__ = ("_request",)

    def __init__(self, request: Request) -> None:
        self._request = request

    @property
    def id(self) -> str:
        """The id that the log and the header X-Request-Id of the answer show."""
        return self._request.head.request_id.decode("latin-1")

    @property
    def path(self) -> str:
        """The path of the request, such as `/predict`."""
        return self._request.head.path.decode("utf-8", "replace")

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers by name, in lower case. A header that was sent several times has all its values, with commas."""
        headers: Dict[str, str] = {}
        for line in filter(None, self._whole_head().split(b"\n")):
            name, _, value = line.decode("latin-1").partition(":")
            separator = "; " if name == "cookie" else ", "
            headers[name] = headers[name] + separator + value if name in headers else value
        return MappingProxyType(headers)

    @property
    def query(self) -> Mapping[str, Any]:
        """The part of the address after the `?`, as texts by name. A name that was sent several times has a list."""
        lists: Dict[str, List[str]] = {}
        for name, value in parse_qsl(self._request.head.query.decode("latin-1"), keep_blank_values=True):
            lists.setdefault(name, []).append(value)
        return MappingProxyType({name: values[0] if len(values) == 1 else values for name, values in lists.items()})

    @property
    def client(self) -> str:
        """The network address of the client, or of a proxy in front of the server."""
        self._whole_head()
        return self._request.head.client.decode("latin-1")

    @property
    def deadline(self) -> float:
        """Seconds that are left until the client is answered with a timeout; below 0 it has been answered so."""
        since = getattr(self._request, "since", None)
        return self._request.seconds_left - (time.monotonic() - since if since is not None else 0.0)

    @property
    def traceparent(self) -> str:
        """The W3C trace context that the client sent, or an empty text."""
        return self._request.head.traceparent.decode("latin-1")

    def __repr__(self) -> str:
        return f"RequestInfo(id={self.id!r}, path={self.path!r})"

    def _whole_head(self) -> bytes:
        """The lines of its headers. Raises RuntimeError where the front did not send them."""
        if not self._request.head.headers:
            raise RuntimeError("write `from panglot import request` in the script itself: else no headers are sent")
        return self._request.head.headers


def requests() -> List[RequestInfo]:
    """The requests of the call in progress: one, or those of the batch, in the order of its items."""
    return [RequestInfo(request) for request in current()]


def request() -> RequestInfo:
    """The request of the call in progress. Raises RuntimeError outside of one, and where there may be several."""
    if together.get():
        raise RuntimeError("a function that takes batches has several requests: requests() gives them in order")
    request = current()
    if len(request) != 1:
        raise RuntimeError("there is no request here: request() is for functions while they answer one")
    return RequestInfo(request[0])


def current() -> Sequence[Request]:
    # The task's own request first: where several calls are in progress, `running` cannot tell them apart.
    return in_task.get() or running
