"""What C libraries and started programs print: they write to descriptors 1 and 2, past `sys.stdout`.

Both descriptors lead to pipes that this process reads itself. What comes out goes to the log, and to whoever listens.
What Python prints does not take this way: `WholeLines` writes it to the log, in whole lines.
"""

from __future__ import annotations

import _thread
import codecs
import contextlib
import ctypes
import errno
import io
import os
import select
import sys
import threading
from typing import Callable, List, Optional, Sequence, Tuple

from panglot_worker.scripts.whole_lines import WholeLines

SPLICE_F_NONBLOCK = 2
PIECE = 65536
SERIAL = -1
"""Whose line is unfinished, where native output ended without a newline; lines of threads have serials above 0."""

libc = ctypes.CDLL(None, use_errno=True)


class Source:
    """One of the two descriptors: its pipe, and where its output belongs."""

    def __init__(self, name: str, stream: WholeLines, number: int, read: int, write: int) -> None:
        self.name = name
        self.output = stream.output
        self.read = read
        self.log = os.dup(number)
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        stream.flush()
        # Python's own lines keep their way to the log.
        stream.log = io.TextIOWrapper(
            io.FileIO(self.log, "w", closefd=False), stream.encoding, stream.errors, "\n", write_through=True
        )
        os.dup2(write, number)
        os.close(write)
        os.set_inheritable(read, False)

    def take(self) -> Optional[str]:
        """Some of what has been written, which is in the log then; None: there is nothing more."""
        with self.output.lock:
            size = self._copy()
            # Copied before it is taken out of the pipe: if this process dies in between, its starter finds it there.
            data = os.read(self.read, size) if size else b""
            if data:
                self.output.unfinished = 0 if data.endswith(b"\n") else SERIAL
        return self._decoder.decode(data) if data else None

    def _copy(self) -> int:
        """Copy to the log what is in the pipe; how many bytes. Waits for a slow log, as a `print` does."""
        while is_ready(self.read, select.POLLIN):
            if self.output.unfinished not in (0, SERIAL):
                os.write(self.log, b"\n")
                self.output.unfinished = 0
            size: int = libc.tee(self.read, self.log, PIECE, SPLICE_F_NONBLOCK)
            if size >= 0:
                return size
            number = ctypes.get_errno()
            if number != errno.EAGAIN:
                raise OSError(number, "tee: " + os.strerror(number))
            is_ready(self.log, select.POLLOUT, None)
        return 0


class NativeOutput:
    """Reads both pipes: at once where somebody asks, else on a thread."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self.listener: Optional[Callable[[str, str], None]] = None
        """Gets the stream and the text of all that is read; under the lock."""
        self._sources = sources
        self._lock = threading.RLock()
        self._drains = False
        os.register_at_fork(after_in_child=self._leave)

    def start(self) -> None:
        """Read from now on, whoever asks."""
        # Not a `threading.Thread`: scripts count those, and so does `WholeLines`.
        _thread.start_new_thread(self._run, ())

    def drain(self) -> None:
        """Take all that has been written so far. Nothing happens within a listener."""
        with self._lock:
            if self._drains:
                return
            self._drains = True
            try:
                for source in self._sources:
                    self._drain(source)
            finally:
                self._drains = False

    def _drain(self, source: Source) -> None:
        while True:
            text = source.take()
            if text is None:
                return
            if self.listener is not None:
                self.listener(source.name, text)

    def settle(self) -> None:
        """Take all that has been printed so far, also what C has in its buffer."""
        with contextlib.suppress(ValueError, AttributeError):
            # Not all of its files: another thread may wait for input, with the lock of its file.
            libc.fflush(ctypes.c_void_p.in_dll(libc, "stdout"))
        self.drain()

    def _run(self) -> None:
        waiting = select.poll()
        for source in self._sources:
            waiting.register(source.read, select.POLLIN)
        while True:
            for number, event in waiting.poll():
                if not event & select.POLLIN:
                    # The script has closed its descriptor: nothing comes any more.
                    waiting.unregister(number)
            self.drain()

    def _leave(self) -> None:
        """In a forked child: it prints into the pipes, and does not read them."""
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
    """Have descriptors 1 and 2 lead to these pipes; without any, nothing happens. `start` reads them."""
    sources: List[Source] = []
    for number, (name, (read, write)) in enumerate(zip(("stdout", "stderr"), pipes), 1):
        stream = getattr(sys, "__%s__" % name)
        assert isinstance(stream, WholeLines), "whole_lines.install() comes first"
        sources.append(Source(name, stream, number, read, write))
    if sources:
        sys.__stdout__.native = NativeOutput(sources)  # type: ignore[union-attr]  # a WholeLines, as seen above


def start() -> None:
    """Read the pipes from now on. There is a further thread from then on."""
    native = of_process()
    if native is not None:
        native.start()


def listen(listener: Optional[Callable[[str, str], None]]) -> None:
    native = of_process()
    if native is not None:
        native.listener = listener


def drain() -> None:
    """Take all that has been written so far."""
    native = of_process()
    if native is not None:
        native.drain()


def settle() -> None:
    """Take all that has been printed so far, also what C has in its buffer."""
    native = of_process()
    if native is not None:
        native.settle()


def is_ready(number: int, event: int, patience: Optional[float] = 0) -> bool:
    """Whether a descriptor can be read or written, as `event` says; `patience` None: once it can."""
    waiting = select.poll()
    waiting.register(number, event)
    return any(events & event for _, events in waiting.poll(patience))
