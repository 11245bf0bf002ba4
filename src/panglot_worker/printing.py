"""Standard output and error in whole lines, however many threads print at once.

`print` writes its words and its newline one by one, so that lines of threads that print together are mixed. Here a
thread's line is written when it is complete, in one piece.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import sys
import threading
import weakref
from typing import Any, Dict, List

MOST = 65536
"""Characters of a line that are kept until it is complete."""


class Press:
    """Lets one thread write at a time. Streams that lead to the same place share one."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.serials = itertools.count(1)
        self.unfinished = 0
        """Whose line was written so far without being complete."""

    def renew(self) -> None:
        """In a fork: whoever held the lock is not there."""
        self.lock = threading.RLock()


class Rest:
    """What a thread has written of its line. When the thread ends, that is all of it."""

    __slots__ = ("__weakref__", "_pid", "_stream", "pieces", "serial", "size")

    def __init__(self, stream: "WholeLines", serial: int) -> None:
        self.pieces: List[str] = []
        self.size = 0
        self.serial = serial
        self._stream = stream
        self._pid = os.getpid()

    def take(self) -> str:
        pieces, self.pieces, self.size = self.pieces, [], 0
        return "".join(pieces)

    def finish(self) -> None:
        """Write what is left, as a line of its own. Not in a fork, where it is another's."""
        text = self.take()
        if text and self._pid == os.getpid():
            self._stream.emit(text + "\n", self.serial)

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.finish()


class WholeLines(io.TextIOWrapper):
    """In the place of a standard stream, over the same buffer.

    `flush` writes an incomplete line where that can be seen and mixes with nothing: to a terminal, or while there is
    only one thread.
    """

    def __init__(self, stream: Any, press: Press) -> None:
        super().__init__(stream.buffer, stream.encoding, stream.errors, "\n", line_buffering=True)
        vars(self)["mode"] = stream.mode
        self.press = press
        self._original = stream
        """Held, since it closes the buffer when it goes."""
        self._own = threading.local()
        self._rests: "weakref.WeakSet[Rest]" = weakref.WeakSet()

    def _rest(self) -> Rest:
        """That of this thread."""
        try:
            rest: Rest = self._own.rest
        except AttributeError:
            with self.press.lock:
                rest = self._own.rest = Rest(self, next(self.press.serials))
                self._rests.add(rest)
        return rest

    def write(self, text: str) -> int:
        if not isinstance(text, str):
            raise TypeError("write() argument must be str, not %s" % type(text).__name__)
        rest = self._rest()
        end = text.rfind("\n") + 1
        if end:
            self.emit(rest.take() + text[:end], rest.serial)
        if end < len(text):
            rest.pieces.append(text[end:])
            rest.size += len(text) - end
            if rest.size > MOST:
                self.emit(rest.take(), rest.serial)
        return len(text)

    def emit(self, text: str, serial: int) -> None:
        """Write text now; on a line of its own, if another's is unfinished."""
        press = self.press
        with press.lock:
            super().write(text if press.unfinished in (0, serial) else "\n" + text)
            press.unfinished = 0 if text[-1] == "\n" else serial

    def flush(self) -> None:
        rest = getattr(self._own, "rest", None)
        if rest is not None and rest.pieces and (threading.active_count() == 1 or self.isatty()):
            self.emit(rest.take(), rest.serial)
        with self.press.lock:
            super().flush()

    def finish(self) -> None:
        """Write the incomplete lines of all threads, each as a line of its own."""
        with self.press.lock:
            rests = sorted(self._rests, key=lambda rest: rest.serial)
        for rest in rests:
            rest.finish()
        self.flush()


def install() -> None:
    """From now on this process prints in whole lines."""
    presses: Dict[Any, Press] = {}
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if hasattr(stream, "buffer"):
            made = WholeLines(stream, presses.setdefault(place(stream), Press()))
            setattr(sys, name, made)
            # Scripts put this back; and were it not held here, it would close the buffer when a script replaces it.
            setattr(sys, "__%s__" % name, made)
    for press in presses.values():
        os.register_at_fork(after_in_child=press.renew)


def place(stream: Any) -> Any:
    """Where a stream leads to."""
    try:
        found = os.fstat(stream.fileno())
    except (OSError, ValueError):
        return id(stream)
    return found.st_dev, found.st_ino


def finish() -> None:
    """At the end of the process: nothing that was printed is lost."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.finish() if isinstance(stream, WholeLines) else stream.flush()
