"""Standard output and error in whole lines, however many threads print at once.

`print` writes its words and its newline one by one, so lines of threads that print at once would mix. Here each line is
written in one piece, when it is complete.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import sys
import threading
import weakref
from typing import Any, Callable, Dict, List, Optional

MOST = 65536
"""Characters of an incomplete line that are buffered."""


class Output:
    """One destination of streams. One thread writes to it at a time; streams with the same destination share it."""

    def __init__(self) -> None:
        # Reentrant: `__del__` of an unfinished line may run amid a write of the same thread.
        self.lock = threading.RLock()
        self.serials = itertools.count(1)
        self.unfinished = 0
        """The serial of the line that was written so far without being complete; 0: none."""

    def renew(self) -> None:
        """Make a new lock in a fork, where the thread that may have held the old one does not exist."""
        self.lock = threading.RLock()


class UnfinishedLine:
    """The beginning of one thread's line. It is written as it is when the thread ends, by `__del__`."""

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
        """Write the text as a line of its own; not in a fork, where it belongs to the parent."""
        text = self.take()
        if text and self._pid == os.getpid():
            self._stream.emit(text + "\n", self.serial)

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.finish()


class WholeLines(io.TextIOWrapper):
    """Stands in for a standard stream, over the same buffer, and writes whole lines.

    `flush` writes an incomplete line only to a terminal, where somebody waits for it, or while there is one thread, so
    that nothing can mix with it.
    """

    def __init__(self, stream: Any, output: Output) -> None:
        # With `\n` as newline nothing is translated.
        super().__init__(stream.buffer, stream.encoding, stream.errors, "\n", line_buffering=True)
        # Some libraries ask a standard stream for its mode, which TextIOWrapper itself has not.
        vars(self)["mode"] = stream.mode
        self.output = output
        self.listener: Optional[Callable[[str], None]] = None
        """Takes every text that is written, complete or not; see `panglot_worker.items.capturing`."""
        self.log: Optional[io.TextIOWrapper] = None
        """The destination of lines, where the buffer leads elsewhere; see `panglot_worker.scripts.native_output`."""
        self.native: Any = None
        """The `NativeOutput` of this process, if there is one. Only standard output has it."""
        self._original = stream
        """Held here, because its deletion would close the buffer."""
        self._own = threading.local()
        self._unfinished: "weakref.WeakSet[UnfinishedLine]" = weakref.WeakSet()

    def _line(self) -> UnfinishedLine:
        """The unfinished line of this thread."""
        try:
            line: UnfinishedLine = self._own.line
        except AttributeError:
            with self.output.lock:
                line = self._own.line = UnfinishedLine(self, next(self.output.serials))
                self._unfinished.add(line)
        return line

    def write(self, text: str) -> int:
        """Write the complete lines, and keep the rest until its line is complete."""
        if not isinstance(text, str):
            raise TypeError("write() argument must be str, not %s" % type(text).__name__)
        # Before the lock of the output: a listener takes locks of its own, and may send to the front.
        listener = self.listener
        if listener is not None:
            listener(text)
        line = self._line()
        end = text.rfind("\n") + 1
        if end:
            self.emit(line.take() + text[:end], line.serial)
        if end < len(text):
            line.pieces.append(text[end:])
            line.size += len(text) - end
            # A script that never ends its line must not fill the memory.
            if line.size > MOST:
                self.emit(line.take(), line.serial)
        return len(text)

    def emit(self, text: str, serial: int) -> None:
        """Write text now, on a new line if another thread has an unfinished line there."""
        output = self.output
        with output.lock:
            # One call for the whole text: line buffering then flushes once, and no other process gets between.
            write = super().write if self.log is None else self.log.write
            write(text if output.unfinished in (0, serial) else "\n" + text)
            output.unfinished = 0 if text[-1] == "\n" else serial

    def flush(self) -> None:
        line = getattr(self._own, "line", None)
        if line is not None and line.pieces and (threading.active_count() == 1 or self.isatty()):
            self.emit(line.take(), line.serial)
        with self.output.lock:
            super().flush()

    def finish(self) -> None:
        """Write the incomplete lines of all threads, each as a line of its own."""
        with self.output.lock:
            # A copy made under the lock: a new thread adds to the set while it prints.
            lines = sorted(self._unfinished, key=lambda line: line.serial)
        for line in lines:
            line.finish()
        self.flush()


def install() -> None:
    """Let this process print in whole lines from now on."""
    outputs: Dict[Any, Output] = {}
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if hasattr(stream, "buffer"):
            whole = WholeLines(stream, outputs.setdefault(destination(stream), Output()))
            setattr(sys, name, whole)
            # Scripts restore this stream; without a reference here, replacing it would close the buffer.
            setattr(sys, "__%s__" % name, whole)
    for output in outputs.values():
        os.register_at_fork(after_in_child=output.renew)


def destination(stream: Any) -> Any:
    """What identifies the destination of a stream."""
    try:
        status = os.fstat(stream.fileno())
    except (OSError, ValueError):
        return id(stream)
    # `2>&1` gives two descriptors of one file: both streams must then share one lock.
    return status.st_dev, status.st_ino


def finish() -> None:
    """Write all unfinished lines, at the end of the process, so that no output is lost."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.finish() if isinstance(stream, WholeLines) else stream.flush()
