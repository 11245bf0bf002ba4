"""Figures that a prediction tells, for its answer."""

from __future__ import annotations

import contextvars
from typing import Any, Dict


class ExperimentalFeatureWarning(Warning):
    """What the original warns with."""


class Scope:
    """The prediction in progress."""

    def __init__(self) -> None:
        self.metrics: Dict[str, Any] = {}

    def record_metric(self, name: str, value: Any, mode: str = "replace") -> None:
        """Set a figure, add to it (`increment`), or add to a list of it (`append`). Raises ValueError."""
        if mode == "replace":
            self.metrics[name] = value
        elif mode == "increment":
            self.metrics[name] = self.metrics.get(name, 0) + value
        elif mode == "append":
            self.metrics.setdefault(name, []).append(value)
        else:
            raise ValueError("the mode of a metric is replace, increment or append, not %r" % (mode,))


_scope: "contextvars.ContextVar[Scope]" = contextvars.ContextVar("cog_scope")


def current_scope() -> Scope:
    """That of the prediction in progress; outside of one, one that nobody reads."""
    scope = _scope.get(None)
    return scope if scope is not None else begin_scope()


def begin_scope() -> Scope:
    """Begin a prediction: the dialect calls it."""
    scope = Scope()
    _scope.set(scope)
    return scope


def emit_metric(name: str, value: Any) -> None:
    """Tell a figure of this prediction."""
    current_scope().record_metric(name, value)
