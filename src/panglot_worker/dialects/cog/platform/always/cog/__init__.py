"""The package `cog` that predictors import: their base classes, their inputs, and the types of files."""

from __future__ import annotations

from typing import Any, Callable, Optional, TypeVar, Union

from cog.exceptions import CancelationException
from cog.metrics import ExperimentalFeatureWarning, MetricRecorder, Scope, current_scope, emit_metric
from cog.model import BaseModel
from cog.types import (
    AsyncConcatenateIterator,
    ConcatenateIterator,
    File,
    Input,
    Opaque,
    Path,
    Secret,
    URLFile,
    URLPath,
)

__all__ = [
    "AsyncConcatenateIterator",
    "BaseModel",
    "BasePredictor",
    "BaseRunner",
    "CancelationException",
    "ConcatenateIterator",
    "ExperimentalFeatureWarning",
    "File",
    "Input",
    "MetricRecorder",
    "Opaque",
    "Path",
    "Secret",
    "URLFile",
    "URLPath",
    "concurrent",
    "current_scope",
    "emit_metric",
    "streaming",
]
__version__ = "0.23.1"
Function = TypeVar("Function", bound=Callable[..., Any])


class BasePredictor:
    """What predictors derive from: `setup` runs once, `predict` for each request."""

    def setup(self, weights: Optional[Union[File, Path, str]] = None) -> None:
        """Load what predictions need."""

    def record_metric(self, name: str, value: Any, mode: str = "replace") -> None:
        """Tell a figure of this prediction, which its answer has."""
        current_scope().record_metric(name, value, mode)

    @property
    def scope(self) -> Scope:
        return current_scope()


class BaseRunner(BasePredictor):
    """The same by its new name, for classes with `run`."""


def streaming(function: Any = None) -> Any:
    """Let clients have the outputs of a method one by one, as server-sent events; with parentheses or without."""

    def mark(marked: Function) -> Function:
        marked.__cog_streaming__ = True  # type: ignore[attr-defined]
        return marked

    return mark if function is None else mark(function)


def concurrent(function: Any = None, *, max: int = 1) -> Any:
    """Let so many predictions of an async method run at once; with parentheses or without."""

    def mark(marked: Function) -> Function:
        marked.__cog_concurrency__ = max  # type: ignore[attr-defined]
        return marked

    return mark if function is None else mark(function)
