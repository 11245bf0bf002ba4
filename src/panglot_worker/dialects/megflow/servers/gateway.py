"""Between the front and the server nodes of a graph: requests go in, answers come out, and none is forgotten."""

from __future__ import annotations

import contextlib
import os
import select
import threading
import time
from collections import deque
from typing import Any, Deque, Dict, List, Optional, Set, Tuple

from panglot_worker.dialects.base import Request
from panglot_worker.dialects.megflow.graph.envelope import Loss, OpenRequest
from panglot_worker.dialects.megflow.graph.node_rates import NodeRates
from panglot_worker.line import wire
from panglot_worker.line.port import Port
from panglot_worker.video.ledger import Ledger

REPORT_EVERY = 1.0


class Gateway:
    """The one way between the front and a graph. The main thread runs `serve`; nodes call from any thread."""

    def __init__(self, port: Port, ledger: Optional[Ledger] = None) -> None:
        self.port = port
        self.ledger = ledger
        """Where streams are noted for the next worker; None where there is none."""
        self.tensor_adapter: Any = None
        """Adapts requests with tensors; `serve` of the dialect sets it before the first item."""
        self.runtime: Any = None
        self._servers: Dict[str, Any] = {}
        self._open: Set[int] = set()
        """The items the front waits for."""
        self._in_graph: Dict[int, Tuple[Any, OpenRequest]] = {}
        """The items that are in the graph, with the server node they came in by."""
        self._unwanted: Set[int] = set()
        self._losses: Deque[Tuple[Any, OpenRequest, Loss]] = deque()
        self._lock = threading.Lock()
        self._extras: Dict[str, int] = {}
        """By server node, how many answers had no request."""
        self._stopping = False
        self._gone: Set[str] = set()
        """Server nodes whose streams are another worker's by now."""
        self._reported: Any = None
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        # A full pipe has woken the main thread already; a finaliser must never wait here.
        os.set_blocking(self._wake_write, False)

    # For server nodes

    def is_unwanted(self, item: int) -> bool:
        return item in self._unwanted

    def entered(self, item: int, server: Any, open_request: OpenRequest) -> None:
        self._in_graph[item] = (server, open_request)

    def reply(self, item: int, reply: wire.Reply) -> None:
        """Send the one answer to an item. A second one is dropped: every item gets exactly one."""
        with self._lock:
            if item not in self._open:
                return
            self._open.discard(item)
            self._unwanted.discard(item)
            self._in_graph.pop(item, None)
        # Without the lock: a slow front must not hold up the nodes that only note something.
        self.port.reply(reply)
        if self._stopping:
            # This may be the last answer, for which `serve` waits.
            self.wake()

    def part(self, item: int, reply: wire.Reply) -> None:
        """Send a part of the answer to an item; more of it follows."""
        with self._lock:
            wanted = item in self._open and item not in self._unwanted
        if wanted:
            self.port.reply(reply)

    def lost(self, server: Any, open_request: OpenRequest, loss: Loss) -> None:
        """Note that a request is lost. A finaliser calls this, so it takes no lock; the main thread answers."""
        self._losses.append((server, open_request, loss))
        self.wake()

    def extra(self, server: str, unnumbered: bool) -> None:
        """Count an answer that nobody waits for, and warn of the first one."""
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
        """Feed the graph until the front says stop and all is answered. Returns why it ended earlier, if it did."""
        self.runtime = runtime
        runtime.on_broken = self.wake
        self._servers = {server.path: server for server in runtime.servers}
        rates = NodeRates()
        poll = select.poll()
        poll.register(self.port.fileno(), select.POLLIN)
        poll.register(self._wake_read, select.POLLIN)
        due = time.monotonic()
        while True:
            self._take_frames()
            self._answer_lost()
            if runtime.reason:
                return str(runtime.reason)
            if self._stopping and not self._open:
                return ""
            left = due - time.monotonic()
            if left <= 0:
                due = time.monotonic() + REPORT_EVERY
                self._report(rates)
                left = REPORT_EVERY
            poll.poll(left * 1000 if not self.port.pending else 0)
            # Emptied before the next look at the losses: one that is noted after the look wakes the poll again.
            with contextlib.suppress(BlockingIOError):
                os.read(self._wake_read, 4096)

    def _take_frames(self) -> None:
        self.port.poll()
        while self.port.pending:
            kind, _flags, count, payload = self.port.pending.popleft()
            if kind == wire.RUN:
                for request in self._requests(payload, count):
                    self._begin(request)
            elif kind == wire.TAKE_OVER:
                self._tell_servers("take_over")
            elif kind == wire.STOP:
                self._stopping = True
                self._tell_servers("release")
            else:
                raise wire.WireError("unexpected frame %s" % wire.NAMES.get(kind, kind))
        # Behind the frames: an item and its cancellation may have come in one read.
        while self.port.cancelled:
            self._cancel(self.port.cancelled.pop())
        self.port.tell_free()

    def _requests(self, payload: memoryview, count: int) -> List[Request]:
        """The requests of a frame. Their bodies are copied: nodes work on other threads, for as long as they like."""
        items = self.port.items(payload, count)
        return [Request(item._replace(body=bytes(item.body)) if item.location else item) for item in items]

    def _tell_servers(self, word: str) -> None:
        """Call a method of all server nodes that play streams: their streams pass from one worker to the next."""
        for server in self._playing():
            getattr(server, word)()

    def _playing(self) -> List[Any]:
        return [server for server in self._servers.values() if hasattr(server, "release")]

    def has_released(self, server: Any) -> None:
        """A server node plays none of its streams any more. From any thread; the front hears of the last."""
        with self._lock:
            self._gone.add(server.path)
            all_gone = len(self._gone) == len(self._playing())
        if all_gone and self.ledger is not None:
            self.port.tell(wire.EVENT, {"type": "release"})

    def _begin(self, request: Request) -> None:
        with self._lock:
            self._open.add(request.id)
        # Tools that send requests without HTTP name no node: the first is meant.
        first = next(iter(self._servers.values()))
        self._servers.get(request.head.route.decode("utf-8", "replace"), first).accept(request)

    def _cancel(self, item: int) -> None:
        """Note that nobody waits for an item. Its reply follows when it comes out of the graph, or is lost there."""
        with self._lock:
            if item not in self._open:
                return
            self._unwanted.add(item)
            entered = self._in_graph.get(item)
        if entered is not None:
            server, open_request = entered
            open_request.unwanted = True
            # Its envelopes are gone, and it was left open for a plugin that knows its number. Nobody waits any more.
            if open_request.token() is None:
                server.give_up(open_request, Loss())

    def _answer_lost(self) -> None:
        """Answer the requests of which nothing is left in the graph."""
        # Taken out first: answering may drop further envelopes, whose finalisers add to the queue.
        losses: List[Tuple[Any, OpenRequest, Loss]] = []
        while self._losses:
            losses.append(self._losses.popleft())
        for server, open_request, loss in losses:
            # Where its number is known, an answer may still come in a new envelope.
            if open_request.unwanted or loss.failed or not open_request.known:
                server.give_up(open_request, loss)

    def _report(self, rates: NodeRates) -> None:
        report = rates.take(self.runtime)
        streams = [stream for server in self._servers.values() for stream in getattr(server, "report", list)()]
        if streams:
            report["streams"] = streams
        if report != self._reported:
            self._reported = report
            self.port.tell(wire.EVENT, {"type": "report", "report": report})
