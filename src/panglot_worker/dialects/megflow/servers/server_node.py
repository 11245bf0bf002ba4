"""The part that all server nodes share: it takes requests from the front one by one, and answers each."""

from __future__ import annotations

import queue
from typing import Any, Dict, Optional, Tuple

from panglot_worker.dialects.base import Problem, Request
from panglot_worker.items.replying import cancelled, failed
from panglot_worker.line import wire


class Rejected(Exception):
    """A request that does not reach the graph, and its answer. `times` are the times of its stages so far."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.problem = Problem(status, code, message)
        self.times: wire.Times = wire.NO_TIMES


class ServerNode:
    """A node that takes requests from the front. Its kinds differ in `take` and `unexpected`.

    The main thread calls `accept` and `close`; everything else of a request happens in the node's own thread, or in
    threads that it starts.
    """

    inp: Any
    out: Any

    def __init__(self, name: str, args: Dict[str, Any]) -> None:
        self.name = name
        self.args = args
        self.path = ""
        self.gateway: Any = None
        self._arrivals: "queue.SimpleQueue[Any]" = queue.SimpleQueue()
        """Requests, None at the end, and whatever a kind of node puts there for its own thread."""

    def panglot_attach(self, thread: Any) -> None:
        """Learn the node's path in the graph, and register with the gateway."""
        self.path = thread.name
        self.gateway = thread.runtime.gateway
        thread.runtime.servers.append(self)

    def accept(self, request: Request) -> None:
        """Take a request from the front, from any thread."""
        self._arrivals.put(request)

    def close(self) -> None:
        """Let `exec` end once it has taken what was accepted before."""
        self._arrivals.put(None)

    def exec(self) -> None:
        """Take requests until closed. One that cannot be taken gets an answer that says so, and the node goes on."""
        while True:
            request = self._arrival()
            if request is None:
                return
            self._handle(request)
            # No variable refers to it during the wait for the next one: its body may be large.
            del request

    def _arrival(self) -> Optional[Request]:
        """Wait for the next request; None once closed."""
        request: Optional[Request] = self._arrivals.get()
        return request

    def _handle(self, request: Request) -> None:
        item = request.id
        if self.gateway.is_unwanted(item):
            self.gateway.reply(item, cancelled(item))
            return
        try:
            self.take(request)
        except Rejected as error:
            self.gateway.reply(item, failed(item, error.problem, "", error.times))
        except Exception as error:
            self.gateway.reply(item, failed(item, *self.unexpected(error), wire.NO_TIMES))

    def take(self, request: Request) -> None:
        """Begin to answer a request, here or later. Raises Rejected."""
        raise NotImplementedError

    def unexpected(self, error: Exception) -> Tuple[Problem, str]:
        """The answer to an exception of `take` that is no Rejected, and the text for the log."""
        raise NotImplementedError

    def open_token(self, number: int) -> Any:
        """The token of the open request with this number; None where there is none."""
        return None
