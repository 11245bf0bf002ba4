"""The messages of `panglot serve`: the script is loading; the script is ready, at this address, with this request."""

from __future__ import annotations

import logging
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, field

from panglot.terminal.text import visible

log = logging.getLogger("panglot")
STILL_LOADING = 10.0
WIDEST = 100
CLEAR = "\r\033[K"


@dataclass(frozen=True)
class StartMessage:
    """The message at the end of the start. `pages` are addresses by what is there."""

    name: str
    about: str
    url: str
    pages: dict[str, str] = field(default_factory=dict)
    line: str = ""
    """A line of curl that can be pasted; empty if no request is known."""
    how_to: str = ""
    """How to get such a line, if there is none."""
    workers: str = ""
    """The number of workers, if it changes by itself."""

    def say(self, boxed: bool) -> None:
        """Write the message: between two rules on a terminal, in lines of the log elsewhere."""
        if boxed:
            sys.stderr.write(self.box(shutil.get_terminal_size().columns))
            sys.stderr.flush()
            return
        workers = f", {self.workers} workers" if self.workers else ""
        log.info("%s is ready on %s (%s%s)", self.name, self.url, self.about, workers)
        if self.line:
            log.info("try: %s", self.line)
        else:
            log.info("for a command to try here: %s", self.how_to)

    def box(self, columns: int) -> str:
        """The message between rules. The line of curl has a line of its own, so that it can be copied in one piece."""
        title = f" {visible(self.name)} is ready "
        wide = min(columns, WIDEST)
        workers = {"workers": self.workers} if self.workers else {}
        rows = {"address": self.url, **self.pages, **workers, "stop": "Ctrl-C"}
        start = max(map(len, rows))
        lines = [f"\033[32m{'─' * 2}\033[1m{title}\033[22m{'─' * (wide - len(title) - 2)}\033[0m"]
        lines += [f"  \033[2m{name:{start}}\033[0m  {visible(value)}" for name, value in rows.items()]
        if self.line:
            lines += ["  \033[2mtry it\033[0m", visible(self.line)]
        else:
            lines.append(f"  \033[2m{'try it':{start}}\033[0m  for a command to paste here, {visible(self.how_to)}")
        return "\n".join((*lines, f"\033[32m{'─' * wide}\033[0m", ""))


class LoadingLine(logging.Filter):
    """Shows that the script is loading: a moving line on a terminal, a plain line now and then in a log.

    As a filter of the log's handler it clears the line before other lines are written.
    """

    def __init__(self, step: Callable[[], str]) -> None:
        super().__init__()
        self._step = step
        # Not `sys.stderr.isatty()`: the log of one front of several reaches the terminal by a pipe, line by line.
        self._terminal = os.isatty(2)
        self._told = 0.0
        self._drawn = False

    def __enter__(self) -> LoadingLine:
        for target in log.handlers:
            target.addFilter(self)
        return self

    def __exit__(self, *exc: object) -> None:
        for target in log.handlers:
            target.removeFilter(self)
        self._wipe()

    def filter(self, record: logging.LogRecord) -> bool:
        self._wipe()
        return True

    def _wipe(self) -> None:
        if self._drawn:
            self._drawn = False
            sys.stderr.write(CLEAR)
            sys.stderr.flush()

    def show(self, seconds: float) -> None:
        """Draw the line again, or log it when that is due."""
        if self._terminal and seconds > 0.5:
            line = f"  {'|/-'[int(seconds * 5) % 3]} {seconds:.0f} s, {visible(self._step())}"
            sys.stderr.write(CLEAR + line[: os.get_terminal_size(2).columns - 1])
            sys.stderr.flush()
            self._drawn = True
        elif not self._terminal and seconds - self._told >= STILL_LOADING:
            self._told = seconds
            log.info("still loading after %.0f s: %s", seconds, self._step())
