"""The results of a stream's frames. The latest are stored for later requests, as many as fit."""

from __future__ import annotations

import threading
from collections import deque
from typing import Callable, Deque, Dict, List, NamedTuple, Optional

MOST_BYTES = 16 << 20


class Result(NamedTuple):
    """The result of one frame, or of several."""

    number: int
    """Counted from 1, over all results of the stream."""
    frame: Optional[int]
    """The number of its frame; None when the graph does not tell."""
    seconds: Optional[float]
    """When that frame is shown, from the beginning of the video."""
    message: str
    event: str = ""
    """The kind of a mark, which stands among the results and has a JSON message; empty for results."""


Listener = Callable[[Result], None]


class ResultHistory:
    """The latest results of a stream. Thread-safe; listeners are called in the thread that adds, one by one."""

    def __init__(self, most: int, count: int = 0, marks: int = 0, dropped: int = 0) -> None:
        self.most = most
        self.count = count
        """How many there were, with marks, also in workers before this one."""
        self.marks = marks
        self.dropped = dropped
        """How many results were dropped before anybody took them."""
        self._stored: Deque[Result] = deque()
        self._bytes = 0
        self.taken = count
        """The number of the last that was taken."""
        self._listeners: Dict[int, Listener] = {}
        self._lock = threading.Lock()

    def add(self, frame: Optional[int], seconds: Optional[float], message: str) -> None:
        """Store a result, drop the oldest where there are too many, and send it to the listeners."""
        with self._lock:
            self._add(Result(self.count + 1, frame, seconds, message))

    def mark(self, event: str, message: str) -> None:
        """Send the listeners a mark between the results."""
        with self._lock:
            self.marks += 1
            self._add(Result(self.count + 1, None, None, message, event))

    def _add(self, result: Result) -> None:
        self.count = result.number
        self._stored.append(result)
        self._bytes += len(result.message)
        while len(self._stored) > self.most or (self._bytes > MOST_BYTES and len(self._stored) > 1):
            gone = self._stored.popleft()
            self._bytes -= len(gone.message)
            if gone.number > self.taken:
                self.taken = gone.number
                self.dropped += not gone.event
        for listener in list(self._listeners.values()):
            listener(result)

    def take(self) -> List[Result]:
        """The results that were not taken yet. They stay stored, for listeners that come back."""
        with self._lock:
            untaken = [result for result in self._stored if result.number > self.taken and not result.event]
            self.taken = self.count
            return untaken

    def listen(self, key: int, after: Optional[int], listener: Listener, lost: Callable[[int], None]) -> None:
        """Send the listener the stored results after a number, or all of them, and from now on every new one.

        Before that `lost` gets the number of results after it that are not stored any more, if there are any.
        """
        # All under the lock, so that no result comes twice or is missed between the stored and the new ones.
        with self._lock:
            first = self._stored[0].number if self._stored else self.count + 1
            if after is not None and first - 1 > after:
                lost(first - 1 - after)
            for result in self._stored:
                if after is None or result.number > after:
                    listener(result)
            self._listeners[key] = listener

    def forget(self, key: int) -> None:
        with self._lock:
            self._listeners.pop(key, None)
