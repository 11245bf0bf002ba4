"""What a worker tells about itself, besides answers."""

from __future__ import annotations

import logging
from typing import Any

from panglot.engine.worker import Worker
from panglot.metrics import Metrics
from panglot_worker.wire import LONGEST_TRACEBACK, clipped

log = logging.getLogger("panglot.engine")


def note(worker: Worker, event: dict[str, Any], metrics: Metrics, about: dict[str, Any]) -> None:
    """Act on an EVENT of a worker: change the worker's state, count it, log it."""
    event = {
        name: clipped(value, LONGEST_TRACEBACK) if isinstance(value, str) else value for name, value in event.items()
    }
    kind = event.get("type")
    if kind == "sick":
        worker.sick = True
        worker.retire(str(event["message"]))
    elif kind == "retire" and not worker.sick:
        worker.retire(str(event.get("reason", "")))
        log.warning("%s is replaced: %s", worker, worker.why, extra=about)
    elif kind == "batch_split":
        metrics.reruns["batch_failed"] += int(event["items"])
        message = "a batch of %d failed (%s) and was run item by item: %d failed alone"
        told = {**about, "traceback": event["error"]}
        log.warning(message, event["items"], event["message"], event["failed"], extra=told)
    elif kind == "report":
        worker.report = event["report"]
    elif kind == "note":
        log.info("%s", event["message"], extra=about)
    elif kind == "warning":
        log.warning("%s", event["message"], extra={**about, "traceback": event.get("traceback", "")})
