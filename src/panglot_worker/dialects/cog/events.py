"""What a client that reads events gets while a script works: printed lines, and signs that the server is there."""

from __future__ import annotations

import threading
from typing import Any, Callable, Dict, Tuple

Event = Tuple[str, Any]
"""The name of an event, and what it tells."""
COMMENT = b": keep-alive\n\n"
EVERY = 15.0
"""Seconds between two comments."""


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


class KeepAlive:
    """Sends a comment every few seconds from a thread of its own, so that no proxy takes a silent stream for dead."""

    def __init__(self, send: Callable[[bytes], None], seconds: float = EVERY) -> None:
        self._send = send
        self._seconds = seconds
        self._lock = threading.Lock()
        self._ended = threading.Event()
        threading.Thread(target=self._run, name="keep-alive", daemon=True).start()

    def _run(self) -> None:
        while not self._ended.wait(self._seconds):
            with self._lock:
                # Looked at once more: nothing may follow the end of the answer.
                if not self._ended.is_set():
                    self._send(COMMENT)

    def end(self) -> None:
        """Send nothing more from now on."""
        with self._lock:
            self._ended.set()
