"""A handler, and what the platform makes of its result: the rules of `run_job` and `run_job_generator`."""

from __future__ import annotations

import inspect
import sys
from typing import Any, AsyncIterator, Callable, Dict, Iterator, List

from panglot_worker.dialects.base import Request
from panglot_worker.dialects.runpod.answers import YieldedError


class Work:
    """A job on its way through the handler."""

    __slots__ = ("collects", "job", "request")

    def __init__(self, job: Dict[str, Any], request: Request, collects: bool) -> None:
        self.job = job
        self.request = request
        self.collects = collects
        """Whether the yields of a generator are one answer: nobody could read them one by one."""


class Handler:
    """A function of the script. `finished` is called after each job, with whether its result wants a fresh worker."""

    def __init__(self, function: Callable[..., Any], finished: Callable[[Work, bool], None]) -> None:
        self.function = function
        self._finished = finished
        # As on the platform, the function decides, and not the value that it returns.
        is_async_generator = inspect.isasyncgenfunction(function)
        self.is_generator = inspect.isgeneratorfunction(function) or is_async_generator
        self.is_async = is_async_generator or inspect.iscoroutinefunction(function)

    @property
    def summary(self) -> str:
        """What the author wrote about the handler, or about the script."""
        text = inspect.getdoc(self.function) or getattr(sys.modules.get("__main__"), "__doc__", "") or ""
        return " ".join(inspect.cleandoc(text).split("\n\n")[0].split())

    # One answer

    def run(self, work: Work, settled: Callable[[Any], Any]) -> Dict[str, Any]:
        """Call the handler, which may return something to await. Raises what it raises."""
        refresh: List[bool] = [False]
        try:
            value = self.function(work.job)
            if self.is_generator:
                return {"output": [checked(each) for each in value]}
            return result(settled(value), refresh)
        finally:
            self._finished(work, refresh[0])

    async def run_awaited(self, work: Work) -> Dict[str, Any]:
        """The same on the event loop."""
        refresh: List[bool] = [False]
        try:
            value = self.function(work.job)
            if self.is_generator:
                return {"output": [checked(each) async for each in value]}
            return result(await value, refresh)
        finally:
            self._finished(work, refresh[0])

    # Answers in parts

    def yields(self, work: Work) -> Iterator[Any]:
        """What a generator yields. Raises YieldedError for an error among it."""
        try:
            for each in self.function(work.job):
                yield checked(each)
        finally:
            self._finished(work, False)

    async def awaited_yields(self, work: Work) -> AsyncIterator[Any]:
        """The same on the event loop."""
        try:
            async for each in self.function(work.job):
                yield checked(each)
        finally:
            self._finished(work, False)


def checked(yielded: Any) -> Any:
    """A yield. Raises YieldedError for a dict with an error, as the platform ends the job there."""
    if isinstance(yielded, dict) and yielded.get("error"):
        raise YieldedError(str(yielded["error"]))
    return yielded


def result(value: Any, refresh: List[bool]) -> Dict[str, Any]:
    """The platform's dict with `output` and `error` for what a handler returned; a dict loses two of its keys."""
    if not isinstance(value, dict):
        return {"output": value}
    error = value.pop("error", None)
    refresh[0] = bool(value.pop("refresh_worker", None))
    shown: Dict[str, Any] = {"output": value} if value else {}
    if error:
        shown["error"] = error
    return shown
