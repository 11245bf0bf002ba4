"""Figures that a prediction tells, for its answer."""

from __future__ import annotations

import contextvars
import math
from typing import Any, Callable, Dict, List, Optional

KINDS = (bool, int, float, str, list, dict)
REPLACE, APPEND = "replace", "append"
INCREMENT = ("incr", "increment")
LONGEST, MOST_SEGMENTS = 128, 4


class ExperimentalFeatureWarning(Warning):
    """What the original warns with."""


class MetricRecorder:
    """The figures of one prediction. A name with dots is a place in dicts of dicts."""

    def __init__(self) -> None:
        self._values: Dict[str, Any] = {}
        self._kinds: Dict[str, str] = {}
        self.on_record: Optional[Callable[[str, Any, str], None]] = None
        """Is told each figure with its name and mode."""

    def record(self, key: str, value: Any, mode: str = REPLACE) -> None:
        """Set a figure, add to it (`incr`), or add to a list of it (`append`). Raises ValueError, TypeError."""
        check_name(key)
        kind = type(value).__name__
        if not isinstance(value, KINDS):
            raise TypeError("Unsupported metric value type: %s. Expected bool, int, float, str, list, or dict." % kind)
        self._check_mode(mode, kind)
        known = self._kinds.get(key, kind)
        if known != kind:
            raise TypeError("Metric '%s' has type %s, cannot set to %s without deleting first" % (key, known, kind))
        value = as_json(value)
        if value is None:
            # A number that JSON does not have.
            return
        self._kinds[key] = kind
        self._put(key, value, mode)
        if self.on_record is not None:
            self.on_record(key, value, "increment" if mode in INCREMENT else mode)

    def delete(self, key: str) -> None:
        """Forget a figure; one that is not there is forgotten already."""
        parent, last = self._place(key)
        parent.pop(last, None)
        self._kinds.pop(key, None)

    def figures(self) -> Dict[str, Any]:
        """All figures, for the answer."""
        return self._values

    def _check_mode(self, mode: str, kind: str) -> None:
        if mode in INCREMENT:
            if kind not in ("int", "float"):
                raise TypeError("Increment mode requires int or float, got %s" % kind)
        elif mode not in (REPLACE, APPEND):
            raise TypeError("Invalid metric mode: '%s'. Expected 'replace', 'incr', or 'append'." % mode)

    def _put(self, key: str, value: Any, mode: str) -> None:
        parent, last = self._place(key)
        before = parent.get(last)
        if mode in INCREMENT:
            parent[last] = value if before is None else before + value
        elif mode == APPEND:
            earlier: List[Any] = before if isinstance(before, list) else [] if before is None else [before]
            parent[last] = [*earlier, value]
        else:
            parent[last] = value

    def _place(self, key: str) -> Any:
        """The dict that a figure is in, and its name there."""
        *way, last = key.split(".")
        parent = self._values
        for name in way:
            inner = parent.get(name)
            if not isinstance(inner, dict):
                inner = parent[name] = {}
            parent = inner
        return parent, last

    def __setitem__(self, key: str, value: Any) -> None:
        self.record(key, value)

    def __delitem__(self, key: str) -> None:
        self.delete(key)

    def __repr__(self) -> str:
        return "MetricRecorder(keys=%d)" % len(self._kinds)


class Scope:
    """The prediction in progress."""

    def __init__(self, context: Optional[Dict[str, str]] = None) -> None:
        self.metrics = MetricRecorder()
        self.context: Dict[str, str] = context or {}
        """What the client has sent as `context`."""

    def record_metric(self, key: str, value: Any, mode: str = REPLACE) -> None:
        """Tell a figure. Raises ValueError, TypeError."""
        self.metrics.record(key, value, mode)

    def __repr__(self) -> str:
        return "Scope(%r)" % self.metrics


def as_json(value: Any) -> Any:
    """A figure as JSON holds it: no number that is none, and none of any size. Raises TypeError."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, int) and not isinstance(value, bool):
        return value if -(1 << 63) <= value < 1 << 63 else float(value)
    if isinstance(value, (list, tuple)):
        return [as_json(each) for each in value]
    if isinstance(value, dict):
        return {str(name): as_json(each) for name, each in value.items()}
    if value is not None and not isinstance(value, (bool, str)):
        raise TypeError("Cannot convert %s to JSON metric value" % type(value).__name__)
    return value


def check_name(key: str) -> None:
    """Raise ValueError for what is no name of a figure, and TypeError for what is no text."""
    if not isinstance(key, str):
        raise TypeError("argument 'key': '%s' object cannot be cast as 'str'" % type(key).__name__)
    problem = _problem(key)
    for segment in key.split(".") if not problem else ():
        problem = problem or _segment_problem(segment)
    if problem:
        raise ValueError(problem)


def _problem(key: str) -> str:
    if not key:
        return "metric name must not be empty"
    if len(key) > LONGEST:
        return "metric name must be %d characters or fewer (got %d characters)" % (LONGEST, len(key))
    if key == "predict_time":
        return "'predict_time' is reserved by the runtime"
    if key.startswith("cog."):
        return "the 'cog.' prefix is reserved for system metrics"
    if key[0] == ".":
        return "metric name must not start with a dot"
    if key[-1] == ".":
        return "metric name must not end with a dot"
    if ".." in key:
        return "metric name must not contain empty segments (consecutive dots)"
    count = key.count(".") + 1
    if count > MOST_SEGMENTS:
        return "metric name must have at most %d dot-separated segments (got %d)" % (MOST_SEGMENTS, count)
    return ""


def _segment_problem(segment: str) -> str:
    named = "metric name segment '%s' " % segment
    if not (segment[0].isascii() and segment[0].isalpha()):
        return named + "must start with a letter"
    wrong = [each for each in segment if not (each.isascii() and (each.isalnum() or each == "_"))]
    if wrong:
        return named + "contains invalid character '%s'" % wrong[0]
    if "__" in segment:
        return named + "must not contain consecutive underscores"
    return named + "must end with a letter or digit" if segment[-1] == "_" else ""


_scope: "contextvars.ContextVar[Scope]" = contextvars.ContextVar("cog_scope")


def current_scope() -> Scope:
    """That of the prediction in progress; outside of one, one that nobody reads."""
    scope = _scope.get(None)
    return scope if scope is not None else begin_scope()


def begin_scope(context: Optional[Dict[str, str]] = None) -> Scope:
    """Begin a prediction: the dialect calls it."""
    scope = Scope(context)
    _scope.set(scope)
    return scope


def emit_metric(name: str, value: Any) -> None:
    """Tell a figure of this prediction, in the manner of old scripts."""
    current_scope().record_metric(name, value)
