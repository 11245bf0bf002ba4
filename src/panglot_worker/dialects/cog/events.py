"""The platform's events for the output that a script prints while it makes a prediction."""

from __future__ import annotations

import threading
from typing import Any, Callable, Dict, Tuple

Event = Tuple[str, Any]
"""The name of an event, and what it tells."""


class LogEvents:
    """What a script prints, line by line."""

    def __init__(self, tell: Callable[[Event], None]) -> None:
        self._tell = tell
        # Reentrant: a signal handler of the script may print amid a print.
        self._lock = threading.RLock()
        self._begun: Dict[str, str] = {}
        """The line of each stream that is not complete."""
        self._ended = False

    def heard(self, source: str, text: str) -> None:
        """Take what was printed on a stream, on the thread that prints it or that reads it."""
        with self._lock:
            # A thread that reads or prints may come late: nothing may follow the end of the answer.
            if self._ended:
                return
            lines = (self._begun.pop(source, "") + text).splitlines(True)
            if lines and not lines[-1].endswith(("\n", "\r")):
                self._begun[source] = lines.pop()
            for line in lines:
                self._tell(("log", {"source": source, "data": line}))

    def end(self) -> None:
        """Tell the lines that were never completed, and nothing more from now on."""
        with self._lock:
            self._ended = True
            for source, text in self._begun.items():
                self._tell(("log", {"source": source, "data": text}))
