"""One prediction: its inputs, its times, and how clients see it."""

from __future__ import annotations

import sys
import time
from datetime import datetime, timezone
from typing import Any, Callable, Dict, List

from panglot_worker.dialects.base import Request
from panglot_worker.dialects.cog import outputs
from panglot_worker.dialects.cog.events import Event
from panglot_worker.dialects.cog.files import Files
from panglot_worker.dialects.cog.predictor import Predictor

OWN = ("input", "id", "version", "created_at")
"""Fields of a request that the prediction shows in a place of its own."""


def now() -> str:
    return datetime.now(timezone.utc).isoformat()


class Prediction:
    """A request on its way through the predictor."""

    def __init__(
        self, predictor: Predictor, body: Dict[str, Any], request: Request, values: Dict[str, Any], wants_events: bool
    ) -> None:
        self.predictor = predictor
        """What answers it: the predictor of the package, or the function that trains."""
        self.body = body
        self.request = request
        self.values = values
        """The inputs as clients see them: with defaults, files as their addresses."""
        self.wants_events = wants_events
        self.arguments: Dict[str, Any] = {}
        """The inputs as the script gets them."""
        self.files: Files
        self.write: outputs.Write = outputs.written
        """Makes the text that stands for a file in its output."""
        self.started_at = now()
        self._began = time.perf_counter()
        self._seconds = 0.0
        self._output: Any = None
        self._outputs: List[Any] = []
        self._scope: Any = None
        """The `cog.metrics.Scope` of this prediction; None before `begin`."""

    @property
    def is_job(self) -> bool:
        return bool(self.request.head.job)

    def begin(self) -> None:
        """Note that the script is called now."""
        self.started_at, self._began = now(), time.perf_counter()
        context = self.body.get("context")
        self._scope = sys.modules["cog.metrics"].begin_scope(context if isinstance(context, dict) else None)

    def tell_figures(self, tell: Callable[[Event], None]) -> None:
        """Tell each further figure of the script as an event."""

        def record(name: str, value: Any, mode: str) -> None:
            tell(("metric", {"name": name, "value": value, "mode": mode}))

        self._scope.metrics.on_record = record

    def end(self, output: Any) -> "Prediction":
        """Note the result of the script, and the time that it took."""
        self._seconds = time.perf_counter() - self._began
        self._output = output
        return self

    # What clients see

    def succeeded(self) -> Dict[str, Any]:
        """The prediction with its output. Raises BadFile for a file that is not there."""
        return self._shown("succeeded", outputs.plain(self._output, self.write), None, self._metrics(), "")

    def failed(self, error: str, traceback: str = "") -> Dict[str, Any]:
        return self._shown("failed", None, error, None, traceback)

    def _metrics(self) -> Dict[str, Any]:
        return {"predict_time": self._seconds, **(self._scope.metrics.figures() if self._scope is not None else {})}

    def _shown(self, status: str, output: Any, error: Any, metrics: Any, more_logs: str) -> Dict[str, Any]:
        further = {name: value for name, value in self.body.items() if name not in OWN}
        shown = {
            **further,
            "input": outputs.plain(self.values),
            "output": output,
            "id": self.body.get("id"),
            "version": None,
            "created_at": self.body.get("created_at"),
            "started_at": self.started_at,
            "completed_at": now(),
            "logs": self.request.printed + more_logs,
            "error": error,
            "status": status,
            "metrics": metrics,
        }
        if self.is_job:
            # The front knows the id under which clients know the job, since when, and what its API calls a version.
            del shown["id"], shown["version"], shown["created_at"]
        return shown

    # Events

    def started_event(self) -> Event:
        if not self.is_job and self.body.get("id") is None:
            self.body["id"] = "pred_" + self.request.head.request_id.decode("latin-1")
        return "start", {"id": self.body.get("id"), "status": "processing"}

    def output_event(self, value: Any, index: int) -> Event:
        """An output as it comes. Raises BadFile for a file that is not there."""
        chunk = outputs.plain(value, self.write)
        self._outputs.append(chunk)
        return "output", {"chunk": chunk, "index": index}

    def completed_event(self, is_list: bool) -> Event:
        """The whole prediction."""
        return "completed", self.end(self._outputs if is_list else self._outputs[0]).succeeded()

    def failed_event(self, error: str) -> Event:
        """The whole prediction, with the outputs and figures from before it failed."""
        self._seconds = time.perf_counter() - self._began
        return "completed", {**self.failed(error), "output": self._outputs or None, "metrics": self._metrics()}
