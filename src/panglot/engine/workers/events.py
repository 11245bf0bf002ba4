"""What a worker reports about itself, besides answers."""

from __future__ import annotations

import logging
from typing import Any

from panglot.engine.workers.event_log import EventLog
from panglot.engine.workers.worker import Worker
from panglot.metrics.counters import Metrics
from panglot_worker.clipping import LONGEST_TRACEBACK, clipped


def note(worker: Worker, event: dict[str, Any], metrics: Metrics, about: dict[str, Any], event_log: EventLog) -> None:
    """Act on an EVENT of a worker: change the worker's state, count it, log it."""
    event = {
        name: clipped(value, LONGEST_TRACEBACK) if isinstance(value, str) else value for name, value in event.items()
    }

    def tell(level: int, message: str, traceback: str = "") -> None:
        event_log.write(level, worker.index, message, {**about, "traceback": traceback})

    kind = event.get("type")
    if kind == "sick":
        # First: `mark_retiring` looks at it for the reason.
        worker.sick = True
        worker.mark_retiring(str(event["message"]))
    elif kind == "retire" and not worker.sick:
        # A sick worker says this too when it ends: it has been marked before, and its death is logged.
        worker.mark_retiring(str(event.get("reason", "")))
        tell(logging.INFO if event.get("planned") else logging.WARNING, f"{worker} is replaced: {worker.why}")
    elif kind == "batch_split":
        metrics.reruns["batch_failed"] += int(event["items"])
        message = "a batch of {items} failed ({message}) and was run item by item: {failed} failed alone"
        tell(logging.WARNING, message.format_map(event), event["error"])
    elif kind == "report":
        worker.report = event["report"]
    elif kind == "figure":
        problem = metrics.figures.take(event)
        if problem:
            tell(logging.WARNING, problem)
    elif kind == "note":
        tell(logging.INFO, event["message"])
    elif kind == "warning":
        tell(logging.WARNING, event["message"], str(event.get("traceback", "")))
