"""The output of a script during one call, for platforms that answer with it or show it while the call runs.

Text that goes through `sys.stdout` and `sys.stderr` is captured (`print`, `logging`, progress bars); without `--inline`
also output of C libraries and of programs that the script starts. Everything captured is in the log too. With several
calls at once nobody could tell their output apart, so nothing is captured then.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections import deque
from typing import Any, Callable, Deque, Iterable, Iterator, List, Optional, Tuple

from panglot_worker.dialects.base import Answer, Dialect, Request, Stages
from panglot_worker.items import bars
from panglot_worker.line import wire
from panglot_worker.line.port import Port
from panglot_worker.scripts import native_output
from panglot_worker.scripts.whole_lines import WholeLines

CUT = "[...]\n"
"""Stands for output that was left out at the beginning."""
EVERY = 0.5
"""Seconds between two reports to the front while a call runs."""


class Capture:
    """The output of the call in progress: its last characters, at most `most`. Threads of the script add to it."""

    def __init__(self, port: Port, most: int, reads_bars: bool = False) -> None:
        self.port = port
        self.most = most
        self.reads_bars = reads_bars
        """Whether progress bars on standard error tell the front how far the call is."""
        # Reentrant: a signal handler of the script may print amid a print.
        self._lock = threading.RLock()
        self._listens = False
        self._item = 0
        """The item of the call in progress; 0 while the script is loaded, when output is sent to no client."""
        self._parts: Deque[Tuple[str, str]] = deque()
        self._size = 0
        self._is_cut = False
        self._unsent: List[Tuple[str, str]] = []
        self._sent_at = 0.0
        self.on_print: Optional[Callable[[str, str], None]] = None
        """Takes the stream and the text of all output of this call, on the thread that prints it."""

    @contextlib.contextmanager
    def of(self, request: Request) -> Iterator[None]:
        """Capture the output meanwhile, for this request; nothing where a capture is in progress already."""
        if self._listens:
            yield
            return
        request.capture = self
        with self.listening(request.id):
            yield

    @contextlib.contextmanager
    def listening(self, item: int = 0) -> Iterator[None]:
        """Capture the output meanwhile, and forget the earlier output. Without an item: while a script loads."""
        self._listens, self._item = True, item
        self._size, self._is_cut, self._sent_at = 0, False, time.monotonic()
        self._parts.clear()
        # `sys.__stdout__`, not `sys.stdout`: scripts and test tools replace the latter by streams of their own.
        streams = {name: getattr(sys, "__%s__" % name) for name in ("stdout", "stderr")}
        whole = {name: stream for name, stream in streams.items() if isinstance(stream, WholeLines)}
        # Output between two calls belongs to none: it goes to the log alone, before the listener is there.
        native_output.settle()
        native_output.listen(self._add)
        for name, stream in whole.items():
            stream.listener = self._listener(name)
        try:
            yield
        finally:
            self.on_print = None
            native_output.listen(None)
            for stream in whole.values():
                stream.listener = None
            # A thread of the script may be printing at this very moment.
            with self._lock:
                self._listens = False
                self._unsent.clear()

    def _listener(self, name: str) -> Callable[[str], None]:
        return lambda text: self._take(name, text)

    def _take(self, name: str, text: str) -> None:
        # First the output of libraries that was written earlier, so that the order stays.
        native_output.drain()
        self._add(name, text)

    def _add(self, name: str, text: str) -> None:
        with self._lock:
            self._parts.append((name, text))
            self._unsent.append((name, text))
            self._size += len(text)
            while self._size > self.most and self._parts:
                self._shorten()
        on_print = self.on_print
        if on_print is not None:
            on_print(name, text)
        if time.monotonic() - self._sent_at > EVERY:
            self._report()

    def _shorten(self) -> None:
        """Drop characters beyond `most` at the beginning."""
        name, first = self._parts.popleft()
        excess = self._size - self.most
        self._size -= min(excess, len(first))
        self._is_cut = True
        if excess < len(first):
            self._parts.appendleft((name, first[excess:]))

    def flush(self) -> None:
        """Report the output since the last report to the front, with the content of C's buffer."""
        native_output.settle()
        self._report()

    def _report(self) -> None:
        """The same without C's buffer. A library that holds its lock may wait for the thread that reads its output."""
        with self._lock:
            unsent, self._unsent = self._unsent, []
            item, self._sent_at = self._item, time.monotonic()
        # Sent without the lock: while the front is slow, threads of the script can print.
        texts = [(name, text[-self.most :]) for name, text in joined(unsent)]
        for name, text in texts if item else ():
            self.port.tell(wire.EVENT, {"type": "printed", "item": item, "source": name, "text": text})
            bar = bars.last_bar(text) if self.reads_bars and name == "stderr" else None
            if bar is not None:
                self.port.tell(wire.EVENT, {"type": "progress", "item": item, **bar._asdict()})

    @property
    def parts(self) -> List[Tuple[str, str]]:
        """The output so far: the name of the stream, `stdout` or `stderr`, and the text."""
        native_output.settle()
        with self._lock:
            return joined(self._parts)

    @property
    def text(self) -> str:
        """The output of both streams so far, in its order."""
        native_output.settle()
        with self._lock:
            return (CUT if self._is_cut else "") + "".join(text for _, text in self._parts)

    def around(self, stages: Stages) -> Stages:
        """The stages, changed so that the front gets all output before the answer."""
        return stages._replace(
            encode=self._flushing(stages.encode),
            by_route={route: self.around(own) for route, own in stages.by_route.items()},
        )

    def _flushing(self, encode: Callable[[Any, Request], Answer]) -> Callable[[Any, Request], Answer]:
        def encode_and_flush(output: Any, request: Request) -> Answer:
            # After `encode`, which may run code of the script that prints.
            answer = encode(output, request)
            self.flush()
            return answer

        return encode_and_flush


def joined(parts: Iterable[Tuple[str, str]]) -> List[Tuple[str, str]]:
    """Texts of one stream that follow each other, as one."""
    runs: List[Tuple[str, List[str]]] = []
    for name, text in parts:
        if not runs or runs[-1][0] != name:
            runs.append((name, []))
        runs[-1][1].append(text)
    return [(name, "".join(texts)) for name, texts in runs]


def capture_of(dialect: Dialect, stages: Stages, port: Port) -> Optional[Capture]:
    """The capture for a dialect's calls; None where it wants none, or its script takes batches."""
    batched = [own.infer_batch is not None for own in (stages, *stages.by_route.values())]
    if not dialect.captured_output or any(batched):
        return None
    return Capture(port, dialect.captured_output, dialect.reads_bars)
