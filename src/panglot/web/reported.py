"""The progress of requests, as scripts report it, for pages that wait for them."""

from __future__ import annotations

from panglot.engine.call import CallProgress

MOST = 1000


class ReportedProgress:
    """The last report of each request, for the last MOST requests that reported. The end of a request removes none."""

    def __init__(self) -> None:
        self._known: dict[bytes, CallProgress] = {}

    def note(self, request_id: bytes, progress: CallProgress) -> None:
        # Put last: the first is the one that has been silent for longest.
        self._known.pop(request_id, None)
        self._known[request_id] = progress
        if len(self._known) > MOST:
            del self._known[next(iter(self._known))]

    def of(self, request_id: str) -> CallProgress | None:
        return self._known.get(request_id.encode("latin-1", "replace"))
