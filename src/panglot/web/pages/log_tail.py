"""The last lines of the log, for the status page."""

from __future__ import annotations

import logging
from collections import deque
from typing import NamedTuple

from panglot.terminal.text import visible

MOST, LONGEST = 500, 500
AFTER = 0.5
"""Seconds after an answer in which what its script printed may still come in."""


class LogLine(NamedTuple):
    """One line: when it was logged, how bad it is, whether a script printed it, and what it says."""

    when: float
    level: str
    of_script: bool
    text: str


class LogTail(logging.Handler):
    """Keeps the first line of each record: tracebacks are for the log, and for development."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: deque[LogLine] = deque(maxlen=MOST)

    def emit(self, record: logging.LogRecord) -> None:
        text = visible(record.getMessage().partition("\n")[0][:LONGEST], "\t")
        self.lines.append(LogLine(record.created, record.levelname.lower(), record.name == "panglot.script", text))

    def about(self, request_id: str, began: float, ended: float) -> list[LogLine]:
        """What was logged of a request, and what scripts printed while it ran."""
        return [
            line
            # A copy: another thread may log meanwhile, and a deque must not change while it is gone through.
            for line in list(self.lines)
            if request_id in line.text or (line.of_script and began - 0.01 <= line.when <= ended + AFTER)
        ]
