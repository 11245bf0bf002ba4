"""Log lines: for people on a terminal, or as JSON objects."""

from __future__ import annotations

import datetime
import json
import logging
import sys
import time
from typing import Any

from panglot.terminal.text import counted, visible
from panglot_worker.line.wire import STAGES

LAYOUT = "\n\t"
"""Control characters a log line may have; all others come from scripts and clients, and are spelt out."""

CONTINUED = "\n" + " " * 9
"""What begins a further line of a record: it stands under the text, clear of the column of times."""

SHOWN_MS = 0.1
"""Stages that took less are not worth their place on a line."""
MOST_A_SECOND = 20
"""Requests that are logged in a second while the log is a terminal."""
EXTRA = ("package", "worker", "request_id", "key", "stages")


class Human(logging.Formatter):
    """Formats a record for people: time, package, level if it is a warning or worse, message."""

    def __init__(self, colour: bool) -> None:
        super().__init__()
        self.colour = colour

    def format(self, record: logging.LogRecord) -> str:
        """One record; further lines of it are indented under its text."""
        clock = time.strftime("%H:%M:%S", time.localtime(record.created))
        level = "" if record.levelno <= logging.INFO else record.levelname.lower() + ": "
        who = getattr(record, "package", "")
        if record.name == "panglot.script":
            who = f"{who}/{getattr(record, 'worker', '?')} |"
        text = f"{who} {level}{record.getMessage()}" if who else f"{level}{record.getMessage()}"
        stack = traceback_of(self, record)
        if stack:
            text += "\n" + stack
        # Lines of a script's or a client's making must not look like lines of this log.
        text = visible(text, LAYOUT).replace("\n", CONTINUED)
        if not self.colour:
            return f"{clock} {text}"
        tint = "31" if record.levelno >= logging.ERROR else "33" if record.levelno >= logging.WARNING else ""
        shown = f"\033[{tint}m{text}\033[0m" if tint else text
        return f"\033[2m{clock}\033[0m {shown}"


def traceback_of(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    """The traceback that came with a record: of an exception of the server, or, as text, of a script."""
    return formatter.formatException(record.exc_info) if record.exc_info else str(getattr(record, "traceback", ""))


def rfc3339(when: float) -> str:
    """A moment as RFC 3339 writes it, to the millisecond, in UTC."""
    return datetime.datetime.fromtimestamp(when, datetime.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class JsonLines(logging.Formatter):
    """Formats a record as one JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        """One record, on one line."""
        value: dict[str, Any] = {
            "time": rfc3339(record.created),
            "level": record.levelname.lower(),
            "source": record.name.removeprefix("panglot."),
            "message": visible(record.getMessage(), LAYOUT),
        }
        for name in EXTRA:
            about = getattr(record, name, "")
            if about != "":
                value[name] = visible(about) if isinstance(about, str) else about
        stack = traceback_of(self, record)
        if stack:
            value["traceback"] = visible(stack, LAYOUT)
        return json.dumps(value, ensure_ascii=False)


class AccessLog:
    """Logs a share of the answered requests, evenly spread."""

    def __init__(self, share: float) -> None:
        self.share = share
        self.count = 0
        self.log = logging.getLogger("panglot.access")
        self.second = 0
        self.in_second = 0

    def answered(self, exchange: Any, status: int, times: tuple[int, ...], total_us: int) -> None:
        """Log an answered request, if it is one of the share."""
        self.count += 1
        if int(self.count * self.share) == int((self.count - 1) * self.share):
            return
        if sys.stderr.isatty() and self._too_many():
            return
        request_id = exchange.request_id.decode("latin-1")
        stages = {
            name: us / 1000 for name, us in zip(("queue", *STAGES), (exchange.queued_us, *times), strict=True) if us
        }
        shown = " ".join(f"{name}={ms:g}" for name, ms in stages.items() if ms >= SHOWN_MS)
        extra = {"package": exchange.model.name, "worker": exchange.worker, "request_id": request_id, "stages": stages}
        if exchange.holder is not None:
            extra["key"] = exchange.holder.name
            shown = f"key={exchange.holder.name} {shown}"
        message = "%s %s %d %.1f ms %s %s"
        method = exchange.method.decode()
        self.log.info(message, method, exchange.route.name, status, total_us / 1000, request_id, shown, extra=extra)

    def _too_many(self) -> bool:
        """Whether more requests are answered than a person can read; those left out are counted once a second."""
        now = int(time.monotonic())
        if now != self.second:
            left_out = self.in_second - MOST_A_SECOND
            if left_out > 0:
                self.log.info("... and %d more requests in that second", left_out)
            self.second, self.in_second = now, 0
        self.in_second += 1
        return self.in_second > MOST_A_SECOND


def missing_lines(count: int) -> None:
    """Log that lines are missing at this place."""
    logging.getLogger("panglot.logs.lines").warning("%s dropped here: not read in time", counted(count, "log line"))


def configure(format: str, level: str) -> None:
    """Send all of Panglot's log lines to stderr."""
    target = logging.StreamHandler(sys.stderr)
    target.setFormatter(JsonLines() if format == "json" else Human(sys.stderr.isatty()))
    root = logging.getLogger("panglot")
    root.handlers[:] = [target]
    root.setLevel(level.upper())
    root.propagate = False
    for name in ("uvicorn.error", "asyncio"):
        library = logging.getLogger(name)
        library.handlers[:] = [target]
        library.setLevel(logging.ERROR)
        library.propagate = False
