"""HTTP for the server nodes of a graph in a user's own program, by the standard library alone.

It stands in for the front, over the same frames, but only for the graph's own routes: there is no queue, and there are
no documents and no metrics. To serve clients that are not trusted, use `panglot serve`.
"""

from __future__ import annotations

import itertools
import queue
import socket
import sys
import threading
from typing import Any, Dict, Generator, List, NamedTuple, Optional

from panglot_worker.dialects.megflow.servers import small_http
from panglot_worker.dialects.megflow.servers.gateway import Gateway
from panglot_worker.graphs.configuration import Node
from panglot_worker.graphs.errors import GraphError
from panglot_worker.line import wire
from panglot_worker.line.port import FrontGone, Port

LONGEST = 3600.0
"""The timeout that each request is sent with, in seconds. No answer is made when it has passed."""
ENDS_WITHIN = 10.0
"""Seconds in which all requests are to be answered after `close`."""


class ListeningNode(NamedTuple):
    """A node that listens, by the path the runtime gives it."""

    path: str
    node: Node


class SmallFront:
    """Listens from its construction on; answers once it was started. Raises GraphError for a port that is taken."""

    def __init__(self, nodes: List[ListeningNode]) -> None:
        ours, theirs = socket.socketpair()
        self.gateway = Gateway(Port(theirs))
        self._port = Port(ours)
        self._numbers = itertools.count(1)
        self._waiting: "Dict[int, queue.SimpleQueue[Optional[wire.Reply]]]" = {}
        self._lock = threading.Lock()
        self._listeners: List[small_http.Listener] = []
        self._serving: Optional[threading.Thread] = None
        for path, node in nodes:
            try:
                self._listeners.append(small_http.Listener(self.send_request, path, node))
            except OSError as error:
                self.close_listeners()
                problem = "'%s' cannot listen on port %s: %s" % (node.name, node.args["port"], error.strerror)
                raise GraphError(problem, *node.position, "choose another port") from None

    def start(self, runtime: Any) -> None:
        """Answer what has come and what comes."""
        self._serving = threading.Thread(target=self._serve, args=(runtime,), name="gateway", daemon=True)
        self._serving.start()
        threading.Thread(target=self._read, name="answers", daemon=True).start()
        for listener in self._listeners:
            listener.start()
            print("%s listens on %s" % (listener.node, listener.url), file=sys.stderr)

    def _serve(self, runtime: Any) -> None:
        reason = self.gateway.serve(runtime)
        if reason:
            print("the graph cannot go on: %s" % reason, file=sys.stderr)

    def ports(self) -> Dict[str, int]:
        """Where each node listens: a graph may say port = 0."""
        return {listener.node: listener.port for listener in self._listeners}

    # Requests and answers

    def send_request(self, head: wire.Head, body: bytes) -> "Generator[wire.Reply, None, None]":
        """The replies to a request, as they come. Closing the generator cancels the request."""
        number = next(self._numbers)
        replies: "queue.SimpleQueue[Optional[wire.Reply]]" = queue.SimpleQueue()
        # Before it is sent: another thread reads the replies, and drops those that nobody waits for.
        with self._lock:
            self._waiting[number] = replies
        item = (number, LONGEST, head.pack(), [body], len(body), 0, 0)
        self._port.send(wire.run_frame([item], 0, wire.SINGLY))
        answered = False
        try:
            while not answered:
                reply = replies.get()
                if reply is None:
                    return
                answered = not reply.flags & wire.MORE
                yield reply
        finally:
            with self._lock:
                self._waiting.pop(number, None)
            if not answered:
                self._port.send([wire.cancel_frame([number], 0)])

    def _read(self) -> None:
        try:
            while True:
                frame = self._port.next()
                if frame.kind == wire.REPLY:
                    for reply in wire.replies(frame.payload, frame.items):
                        with self._lock:
                            replies = self._waiting.get(reply.id)
                        if replies is not None:
                            replies.put(reply)
                elif frame.kind == wire.EVENT:
                    tell(wire.json_object(frame.payload))
        except (FrontGone, OSError):
            with self._lock:
                for replies in self._waiting.values():
                    replies.put(None)

    # The end

    def close(self) -> None:
        """Take no more requests; those that were taken are answered."""
        self.close_listeners()
        self._port.send([wire.frame(wire.STOP, 0)])

    def close_listeners(self) -> None:
        for listener in self._listeners:
            listener.close()

    def wait(self) -> None:
        """Wait until all requests are answered, after `close`."""
        if self._serving is not None:
            self._serving.join(ENDS_WITHIN)
        for listener in self._listeners:
            listener.wait(ENDS_WITHIN)


def tell(event: Dict[str, Any]) -> None:
    """Print the events that the log of a server would show."""
    if event.get("type") == "warning":
        print(event["message"], file=sys.stderr)
