"""Reloading one front after the other, so that few scripts more than usual are in memory at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from panglot.fronts.front_process import FrontProcess
from panglot.fronts.messages import Message, Reload

Tell = Callable[[FrontProcess, Message], None]


class Reloading:
    """Which front reloads now, and which follow."""

    def __init__(self, fronts: Sequence[FrontProcess]) -> None:
        self._fronts = fronts
        self._waiting: list[FrontProcess] = []
        self._now: FrontProcess | None = None
        self._tell: Tell | None = None
        self._model = ""

    def begin(self, tell: Tell, model: str = "") -> None:
        """Have all fronts reload a model, or all. A front that has done so does it again: it has read older files."""
        self._tell = tell
        # Two wishes for different models: all models are reloaded.
        self._model = model if self._now is None or model == self._model else ""
        self._waiting = list(self._fronts)
        if self._now is None:
            self._next()

    def ended(self, index: int) -> None:
        """Note that a front has reloaded, or has died: its successor loads the present files."""
        if self._now is not None and self._now.index == index:
            self._now = None
            self._next()

    def _next(self) -> None:
        # A front without a process will load the present files once it is forked.
        self._waiting = [front for front in self._waiting if front.pid]
        if self._waiting and self._tell is not None:
            self._now = self._waiting.pop(0)
            self._tell(self._now, Reload(self._model))
