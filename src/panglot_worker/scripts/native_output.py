"""The output of C libraries and started programs, which write to descriptors 1 and 2, past `sys.stdout`.

Both descriptors lead to pipes that this process reads itself. It copies their content to the log, and gives it to a
listener. Python's own output does not go through the pipes: `WholeLines` writes it to the log, in whole lines.
"""

from __future__ import annotations

import _thread
import array
import codecs
import contextlib
import ctypes
import errno
import fcntl
import io
import os
import select
import sys
import termios
import threading
from typing import Callable, Iterator, List, Optional, Sequence, Tuple

from panglot_worker.scripts.whole_lines import WholeLines

SPLICE_F_NONBLOCK = 2
PIECE = 65536
PATIENCE = 0.2
"""Seconds that a thread waits for another one that reads: then its own output may come before that of a library."""
PATIENCE_AT_END = 10.0
"""The same at the end of a call, which must have all its output. There a thread that reads waits only for the log."""
SERIAL = -1
"""Stands for an unfinished line of native output; lines of threads have serials above 0."""

libc = ctypes.CDLL(None, use_errno=True)


class Source:
    """One of the two descriptors, with its pipe and its way to the log."""

    def __init__(self, name: str, stream: WholeLines, number: int, read: int, write: int) -> None:
        self.name = name
        self.output = stream.output
        self.read = read
        self.log = os.dup(number)
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        stream.flush()
        # Python's own lines go to the log directly, not through the pipe.
        stream.log = io.TextIOWrapper(
            io.FileIO(self.log, "w", closefd=False), stream.encoding, stream.errors, "\n", write_through=True
        )
        os.dup2(write, number)
        os.close(write)
        os.set_inheritable(read, False)

    def texts(self) -> Iterator[str]:
        """The text that is in the pipe now, which is copied to the log. What is written meanwhile stays there: a
        program may write without end."""
        left = waiting_bytes(self.read)
        while left > 0:
            data = self._take(left)
            if not data:
                return
            left -= len(data)
            yield self._decoder.decode(data)

    def _take(self, most: int) -> bytes:
        """The next bytes in the pipe; none: it is empty."""
        with self.output.lock:
            size = self._copy(min(most, PIECE))
            # Copied before it leaves the pipe: if this process dies in between, the front finds it in the pipe.
            data = os.read(self.read, size) if size else b""
            if data:
                self.output.unfinished = 0 if data.endswith(b"\n") else SERIAL
        return data

    def _copy(self, most: int) -> int:
        """Copy the pipe's content to the log. Returns how many bytes. Waits for a slow log, as a `print` does."""
        while is_ready(self.read, select.POLLIN):
            if self.output.unfinished not in (0, SERIAL):
                os.write(self.log, b"\n")
                self.output.unfinished = 0
            # `tee` copies from pipe to pipe and leaves the content where it is.
            size: int = libc.tee(self.read, self.log, most, SPLICE_F_NONBLOCK)
            if size >= 0:
                return size
            number = ctypes.get_errno()
            if number != errno.EAGAIN:
                raise OSError(number, "tee: " + os.strerror(number))
            is_ready(self.log, select.POLLOUT, None)
        return 0


class NativeOutput:
    """Reads both pipes: at once when `drain` is called, else on a thread."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self.listener: Optional[Callable[[str, str], None]] = None
        """Takes the stream and the text of all output that is read, under the lock."""
        self._sources = sources
        self._lock = threading.RLock()
        self._drains = False
        os.register_at_fork(after_in_child=self._leave)

    def start(self) -> None:
        """Read on a thread from now on."""
        # Not a `threading.Thread`: scripts count those, and so does `WholeLines`.
        _thread.start_new_thread(self._run, ())

    def listen(self, listener: Optional[Callable[[str, str], None]]) -> None:
        """Give all output to this listener from now on. The former has all that was read before."""
        with self._lock:
            self.listener = listener

    def drain(self, patience: float = PATIENCE) -> None:
        """Read all output so far; nothing where another thread reads for longer than `patience`. Called by a listener,
        it does nothing."""
        # The same one at the end: a fork in between gives the child another.
        lock = self._lock
        # A signal handler that prints may hold a lock already, for which the thread waits that reads here.
        if not lock.acquire(timeout=patience):
            return
        try:
            # The lock is reentrant: a listener that prints comes back here.
            if not self._drains:
                self._drains = True
                try:
                    for source in self._sources:
                        for text in source.texts():
                            if self.listener is not None:
                                self.listener(source.name, text)
                finally:
                    self._drains = False
        finally:
            lock.release()

    def settle(self) -> None:
        """Read all output so far, with the content of C's buffer."""
        with contextlib.suppress(ValueError, AttributeError):
            # Not `fflush(NULL)`, which locks every file: another thread may hold a lock while it waits for input.
            libc.fflush(ctypes.c_void_p.in_dll(libc, "stdout"))
        self.drain(PATIENCE_AT_END)

    def _run(self) -> None:
        waiting = select.poll()
        for source in self._sources:
            waiting.register(source.read, select.POLLIN)
        while True:
            for number, event in waiting.poll():
                if not event & select.POLLIN:
                    # Hung up: the script has closed its descriptor, and nothing comes any more.
                    waiting.unregister(number)
            self.drain()

    def _leave(self) -> None:
        """In a forked child: it prints into the pipes, which the parent reads."""
        self._sources, self._lock, self.listener = (), threading.RLock(), None
        for name in ("stdout", "stderr"):
            stream = getattr(sys, "__%s__" % name)
            if isinstance(stream, WholeLines):
                stream.log = stream.listener = stream.native = None


def of_process() -> Optional[NativeOutput]:
    """The reader of this process; None where its descriptors lead to the log themselves."""
    stream = sys.__stdout__
    return stream.native if isinstance(stream, WholeLines) else None


def install(pipes: Sequence[Tuple[int, int]]) -> None:
    """Make descriptors 1 and 2 lead to these pipes, which `start` reads; without pipes, do nothing."""
    sources: List[Source] = []
    for number, (name, (read, write)) in enumerate(zip(("stdout", "stderr"), pipes), 1):
        stream = getattr(sys, "__%s__" % name)
        assert isinstance(stream, WholeLines), "whole_lines.install() comes first"
        sources.append(Source(name, stream, number, read, write))
    if sources:
        sys.__stdout__.native = NativeOutput(sources)  # type: ignore[union-attr]  # a WholeLines, as seen above


def start() -> None:
    """Read the pipes from now on, on a further thread."""
    native = of_process()
    if native is not None:
        native.start()


def listen(listener: Optional[Callable[[str, str], None]]) -> None:
    native = of_process()
    if native is not None:
        native.listen(listener)


def drain() -> None:
    """Read all output so far."""
    native = of_process()
    if native is not None:
        native.drain()


def settle() -> None:
    """Read all output so far, with the content of C's buffer."""
    native = of_process()
    if native is not None:
        native.settle()


def waiting_bytes(pipe: int) -> int:
    """How many bytes are in a pipe."""
    size = array.array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, size)
    return size[0]


def is_ready(number: int, event: int, patience: Optional[float] = 0) -> bool:
    """Whether a descriptor can be read or written, as `event` says; `patience` None: once it can."""
    waiting = select.poll()
    waiting.register(number, event)
    return any(events & event for _, events in waiting.poll(patience))
