"""Between the front and the server nodes of a graph: requests in, answers out, and what became of those between."""

from __future__ import annotations

import contextlib
import os
import select
import threading
import time
from collections import deque
from typing import Any, Deque, Dict, List, Optional, Set, Tuple

from panglot_worker import wire
from panglot_worker.dialects.base import Request
from panglot_worker.dialects.megflow.envelope import Loss, Record
from panglot_worker.dialects.megflow.figures import Figures
from panglot_worker.port import Port
from panglot_worker.video.ledger import Ledger

REPORT_EVERY = 1.0


class Doors:
    """Kept by the main thread. `reply` and `lost` may be called from any."""

    def __init__(self, port: Port, ledger: Optional[Ledger] = None) -> None:
        self.port = port
        self.ledger = ledger
        """Where streams are noted for the worker that comes next, if one may."""
        self.runtime: Any = None
        self._servers: Dict[str, Any] = {}
        self._open: Set[int] = set()
        """Items the front waits for."""
        self._records: Dict[int, Tuple[Any, Record]] = {}
        """Those that are in the graph, with the server node they came in by."""
        self._unwanted: Set[int] = set()
        self._graves: Deque[Tuple[Any, Record, Loss]] = deque()
        self._lock = threading.Lock()
        self._extras: Dict[str, int] = {}
        self._stopping = False
        self._gone: Set[str] = set()
        """Server nodes whose streams are another worker's by now."""
        self._told: Any = None
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)

    # For server nodes

    def is_unwanted(self, item: int) -> bool:
        return item in self._unwanted

    def entered(self, item: int, server: Any, record: Record) -> None:
        self._records[item] = (server, record)

    def reply(self, item: int, reply: wire.Reply) -> None:
        """The one answer to an item."""
        with self._lock:
            if item not in self._open:
                return
            self._open.discard(item)
            self._unwanted.discard(item)
            self._records.pop(item, None)
        self.port.reply(reply)
        if self._stopping:
            self.wake()

    def part(self, item: int, reply: wire.Reply) -> None:
        """A part of the answer to an item, more of which follows."""
        with self._lock:
            wanted = item in self._open and item not in self._unwanted
        if wanted:
            self.port.reply(reply)

    def lost(self, server: Any, record: Record, loss: Loss) -> None:
        """Called by a finaliser, so it takes no lock and only leaves a note."""
        self._graves.append((server, record, loss))
        self.wake()

    def extra(self, server: str, unnumbered: bool) -> None:
        """An answer that nobody waits for."""
        self.port.tell(wire.METRIC, {'panglot_graph_extra_answers_total{node="%s"}' % server: 1})
        first = server not in self._extras
        self._extras[server] = self._extras.get(server, 0) + 1
        if first:
            why = "it has no partial_id: send the envelope received, or a repack of it" if unnumbered else (
                "its request was answered before, or given up"
            )  # fmt: skip
            message = "an answer that came back to '%s' was dropped: %s (said once)" % (server, why)
            self.port.tell(wire.EVENT, {"type": "warning", "message": message})

    def wake(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.write(self._wake_write, b"x")

    # The main thread

    def serve(self, runtime: Any) -> str:
        """Until the front says stop and all is answered, or the graph cannot go on: then why."""
        self.runtime = runtime
        runtime.on_broken = self.wake
        self._servers = {server.path: server for server in runtime.servers}
        figures = Figures()
        poll = select.poll()
        poll.register(self.port.fileno(), select.POLLIN)
        poll.register(self._wake_read, select.POLLIN)
        due = time.monotonic()
        while True:
            self._take_frames()
            self._bury()
            if runtime.reason:
                return str(runtime.reason)
            if self._stopping and not self._open:
                return ""
            left = due - time.monotonic()
            if left <= 0:
                due = time.monotonic() + REPORT_EVERY
                self._report(figures)
                left = REPORT_EVERY
            poll.poll(left * 1000 if not self.port.pending else 0)
            with contextlib.suppress(BlockingIOError):
                os.read(self._wake_read, 4096)

    def _take_frames(self) -> None:
        self.port.poll()
        while self.port.pending:
            kind, _flags, count, payload = self.port.pending.popleft()
            if kind == wire.RUN:
                for item in wire.run_items(payload, count):
                    self._begin(Request(item))
            elif kind == wire.TAKE_OVER:
                self._tell_servers("take_over")
            elif kind == wire.STOP:
                self._stopping = True
                self._tell_servers("let_go")
            else:
                raise wire.WireError("unexpected frame %s" % wire.NAMES.get(kind, kind))
        while self.port.cancelled:
            self._cancel(self.port.cancelled.pop())

    def _tell_servers(self, word: str) -> None:
        """Tell those that play streams that these pass from one worker to the next."""
        for server in self._playing():
            getattr(server, word)()

    def _playing(self) -> List[Any]:
        return [server for server in self._servers.values() if hasattr(server, "let_go")]

    def has_let_go(self, server: Any) -> None:
        """A server node plays none of its streams any more. From any thread; the front hears of the last."""
        with self._lock:
            self._gone.add(server.path)
            all_gone = len(self._gone) == len(self._playing())
        if all_gone and self.ledger is not None:
            self.port.tell(wire.EVENT, {"type": "let_go"})

    def _begin(self, request: Request) -> None:
        with self._lock:
            self._open.add(request.id)
        # Tools that ask without HTTP name no node: the first is meant.
        first = next(iter(self._servers.values()))
        self._servers.get(request.head.route.decode("utf-8", "replace"), first).accept(request)

    def _cancel(self, item: int) -> None:
        """Nobody waits any more. What is still in the graph is answered when it comes out, or goes down with it."""
        with self._lock:
            if item not in self._open:
                return
            self._unwanted.add(item)
            found = self._records.get(item)
        if found is not None:
            server, record = found
            record.unwanted = True
            if record.token() is None:
                server.give_up(record, Loss())

    def _bury(self) -> None:
        graves: List[Tuple[Any, Record, Loss]] = []
        while self._graves:
            graves.append(self._graves.popleft())
        for server, record, loss in graves:
            # Where its number is known, an answer may still come in a new envelope.
            if record.unwanted or loss.failed or not record.known:
                server.give_up(record, loss)

    def _report(self, figures: Figures) -> None:
        report = figures.take(self.runtime)
        streams = [one for server in self._servers.values() for one in getattr(server, "report", list)()]
        if streams:
            report["streams"] = streams
        if report != self._told:
            self._told = report
            self.port.tell(wire.EVENT, {"type": "report", "report": report})
