"""The last failures of a model's script and of its workers, for the log and the status page."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Iterable
from typing import Any

from panglot.engine.call import Call
from panglot.engine.context import EngineContext
from panglot.engine.interface import Trouble
from panglot_worker.clipping import LONGEST_MESSAGE, LONGEST_TRACEBACK, SEE_LOG, clipped

MOST = 20
"""How many are kept."""


class Troubles(deque[Trouble]):
    """The latest come last; the oldest are forgotten."""

    def __init__(self, context: EngineContext) -> None:
        super().__init__(maxlen=MOST)
        self._context = context

    def log_failure(self, request_id: str, message: str, traceback: str, worker: int | None) -> None:
        """Note a failure of the script in the log and here, cut where it is too long."""
        message = clipped(message.removesuffix(SEE_LOG), LONGEST_MESSAGE)
        traceback = clipped(traceback, LONGEST_TRACEBACK)
        if self._context.cluster is not None:
            traceback = self._context.cluster.at_home(traceback)
        traceback = self._context.package.in_archive(traceback)
        self.append(Trouble(time.time(), request_id, message, traceback))
        prefix = f"request {request_id}: " if request_id else ""
        about: dict[str, Any] = {"package": self._context.package.name, "request_id": request_id}
        about |= {"traceback": traceback.rstrip(), **({} if worker is None else {"worker": worker})}
        self._context.event_log.write(logging.ERROR, worker, prefix + message, about)

    def note(self, message: str, more: str, held: Iterable[Call]) -> None:
        """Note a failure that is in the log already; `held` are the calls that a worker had when it died."""
        ids = tuple(call.request_id.decode("latin-1") for call in held)
        message, more = clipped(message, LONGEST_MESSAGE), clipped(more, LONGEST_TRACEBACK)
        self.append(Trouble(time.time(), "", message, more, ids))
