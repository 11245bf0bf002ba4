"""The `starlette.requests.Request` of methods that want one, with what the platform puts on it."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import re
import threading
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Tuple

from panglot_worker.line import wire

PORT = re.compile(r"[0-9]{1,5}")


class Incoming:
    """A request on its way through the methods. It travels between processes without the object made of it."""

    __slots__ = ("body", "item", "made", "raw_head")

    def __init__(self, item: int, raw_head: bytes, body: bytes) -> None:
        self.item = item
        self.raw_head = raw_head
        self.body = body
        self.made: Any = None

    def __reduce__(self) -> Any:
        return (Incoming, (self.item, self.raw_head, self.body))


class Call(NamedTuple):
    """What the methods of a model that looks at requests are called with."""

    inputs: Any
    incoming: Incoming


class Disconnected(threading.Event):
    """An event that is set once nobody waits for the answer. Each `is_set` looks at the line to the front."""

    def __init__(self, is_gone: Callable[[], bool]) -> None:
        super().__init__()
        self._is_gone = is_gone

    def is_set(self) -> bool:
        if not super().is_set() and self._is_gone():
            self.set()
        return super().is_set()


class Requests:
    """Makes the request objects of one worker."""

    def __init__(self, is_gone: Callable[[int], bool]) -> None:
        self._is_gone = is_gone

    def of(self, incoming: Incoming) -> Any:
        """The request object; the same for all methods that run in this process."""
        if incoming.made is None:
            incoming.made = self._make(incoming)
        return incoming.made

    def _make(self, incoming: Incoming) -> Any:
        kind = importlib.import_module("starlette.requests").Request

        def is_gone() -> bool:
            return self._is_gone(incoming.item)

        async def receive() -> Dict[str, Any]:
            # Starlette asks whether the client is there by a receive that it gives up at once.
            while not is_gone():  # noqa: ASYNC110  nobody sets an event: the line to the front is looked at
                await asyncio.sleep(0.05)
            return {"type": "http.disconnect"}

        @contextlib.contextmanager
        def watch_disconnect() -> Iterator[Disconnected]:
            yield Disconnected(is_gone)

        request = kind(scope_of(wire.Head.unpack(incoming.raw_head)), receive)
        # The platform's server has read the body before it calls the model.
        request._body = incoming.body
        request.state.watch_disconnect = watch_disconnect
        return request


def scope_of(head: wire.Head) -> Dict[str, Any]:
    """A request as ASGI has it."""
    headers: List[Tuple[bytes, bytes]] = []
    for line in filter(None, head.headers.split(b"\n")):
        name, _, value = line.partition(b":")
        headers.append((name, value))
    path = head.path or head.route
    host, _, port = dict(headers).get(b"host", b"127.0.0.1:8080").decode("latin-1").partition(":")
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": head.method.decode("latin-1"),
        "scheme": "http",
        "path": path.decode("utf-8", "replace"),
        "raw_path": path,
        "root_path": "",
        "query_string": head.query,
        "headers": headers,
        "client": (head.client.decode("latin-1"), 0) if head.client else None,
        "server": (host, int(port) if PORT.fullmatch(port) else 80),
        "path_params": head.path_values,
        "state": {},
    }
