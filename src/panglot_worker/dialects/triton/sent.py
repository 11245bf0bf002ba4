"""Responses that a model sends instead of returning them."""

from __future__ import annotations

import queue
from typing import Any, Callable

from panglot_worker.line.port import FrontGone, Port
from panglot_worker.line.wire import WireError


def cancellation(port: Port, item_id: int) -> Callable[[], bool]:
    """A function that tells whether a request is cancelled, on any thread of the model."""

    def is_cancelled() -> bool:
        try:
            # A thread that reads at all times fills `cancelled`, and has to see what arrives itself.
            if not port.has_reader:
                port.look()
        except (FrontGone, OSError, WireError):
            # The main loop of this worker gets the same error, and ends the worker.
            return True
        return item_id in port.cancelled

    return is_cancelled


class Alone:
    """The way of the only response to a request of a model that is not decoupled."""

    def __init__(self, is_cancelled: Callable[[], bool]) -> None:
        # Not a Queue: `lost` is called while objects are collected, which may be in the middle of any `put`.
        self.coming: "queue.SimpleQueue[Any]" = queue.SimpleQueue()
        self.is_cancelled = is_cancelled

    def take(self, response: Any, last: bool) -> None:
        """Note a response, and the end."""
        if response is not None:
            self.coming.put(response)
        if last:
            self.coming.put(None)

    def lost(self) -> None:
        """Note that nothing more can come."""
        self.coming.put(self)


def sent_alone(request: Any, module: Any) -> Any:
    """The response that a model sent for a request. Waits for its threads; an exception, where they send none."""
    responses, request._responses = request._responses, None
    if responses is None:
        return None
    way = responses._way
    # From here on the senders of the model are the only owners: the way is lost with the last of them.
    del responses
    response = way.coming.get()
    if response is way or (response is not None and way.coming.get() is way):
        return module.Lost("the model let go of its request and sent no last response")
    return response
