"""A thread that reads and decodes the next batch, sent ahead, while the script runs the batch before it."""

from __future__ import annotations

import os
import select
import threading
import time
from typing import Any, Callable, List, Optional, Tuple

from panglot_worker.dialects.base import Request, Stages
from panglot_worker.line import wire
from panglot_worker.line.port import Frame, FrontGone, Port

LONG = 0.002
"""Seconds a script call must take before decoding on another thread pays for the change of threads."""
LARGE = 1 << 20
"""Bytes of a body that is not decoded early: for so much JSON, garbage collection is turned off, for all threads."""
now = time.perf_counter


class Intake:
    """The source of a worker's requests. While it is entered, its thread alone may read from the port.

    The thread runs nothing but `decode`, of stages that allow it (`Stages.decodes_ahead`). An item that fails there is
    decoded again when it is run: its failure is reported then, and only if the item is still wanted.
    """

    def __init__(self, port: Port, stages: Stages) -> None:
        self.port = port
        routes = {route: own.decode for route, own in stages.by_route.items() if may_decode_ahead(own)}
        self._by_route = routes if stages.by_route else None
        self._decode = stages.decode
        self.useful = bool(routes) if stages.by_route else may_decode_ahead(stages)
        self._taken: Optional[Tuple[Frame, List[Request]]] = None
        self._error: Optional[BaseException] = None
        self._thread: Optional[threading.Thread] = None
        self._open = threading.Event()
        self._reading = threading.Lock()

    def __enter__(self) -> None:
        if self._thread is None:
            self._start()
        self._open.set()

    def __exit__(self, *raised: Any) -> None:
        self._open.clear()
        with self._reading:
            # The lock is free once the thread has decoded its current item; with `_open` cleared it decodes no other.
            pass

    def _start(self) -> None:
        # A fork amid a decoding would leave the child with half of it done, and no thread to go on.
        reading = self._reading
        os.register_at_fork(before=reading.acquire, after_in_parent=reading.release, after_in_child=reading.release)
        # A daemon: it may sit in `poll` when the worker ends.
        self._thread = threading.Thread(target=self._work, name="panglot-intake", daemon=True)
        self._thread.start()

    def next(self) -> Frame:
        """The next frame. Blocks. Raises the error that ended the thread, and FrontGone at the end of the stream."""
        # Raised here, on the main thread: only the loop of the worker knows what follows from it.
        if self._error is not None:
            raise self._error
        return self.port.next()

    def requests(self, frame: Frame) -> List[Request]:
        """The requests of a RUN frame, decoded already where there was time for it."""
        taken, self._taken = self._taken, None
        if taken is not None and taken[0] is frame:
            return taken[1]
        return [Request(item) for item in self.port.items(frame.payload, frame.items)]

    def _work(self) -> None:
        arrived = select.poll()
        arrived.register(self.port.fileno(), select.POLLIN)
        while self._error is None:
            self._open.wait()
            # Without the lock: this may last for ever, and `__exit__` must not wait so long.
            arrived.poll()
            with self._reading:
                # The script may have returned while we waited: from then on the main thread reads.
                if self._open.is_set():
                    self._take_in()

    def _take_in(self) -> None:
        """Read all that has arrived. If a batch is next, decode its items."""
        try:
            self.port.poll()
            # Looked at and left there: the main thread takes it by `next`, as it does without this thread.
            frame = self.port.pending[0] if self.port.pending else None
            if self._taken is None and frame is not None and is_batch(frame):
                self._taken = (frame, [self._request(item) for item in self.port.items(frame.payload, frame.items)])
        except (FrontGone, OSError, wire.WireError) as error:
            self._error = error

    def _request(self, item: wire.Item) -> Request:
        request, started = Request(item), now()
        decode = self._decoder(request)
        if decode is None or len(item.body) > LARGE or not self._open.is_set():
            return request
        try:
            value = decode(request)
        except BaseException:
            # A new request: half a decoding may have left traces in the old one.
            return Request(item)
        request.decoded = (value, now() - started)
        return request

    def _decoder(self, request: Request) -> Optional[Callable[[Request], Any]]:
        return self._decode if self._by_route is None else self._by_route.get(request.head.route)


def may_decode_ahead(stages: Stages) -> bool:
    return stages.decodes_ahead and "decode" not in stages.script_code


def is_batch(frame: Frame) -> bool:
    return frame.kind == wire.RUN and frame.items > 1 and not frame.flags & wire.SINGLY
