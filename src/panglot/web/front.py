"""What all connections of one listener share."""

from __future__ import annotations

import itertools
import logging
import os
import time
from collections import deque
from collections.abc import Awaitable, Callable
from email.utils import formatdate
from typing import Any

from panglot.engine.call import Fault
from panglot.engine.engine import Engine
from panglot.metrics import Metrics
from panglot.package import Package
from panglot.settings import Settings
from panglot.web.access import Access
from panglot.web.contract import Contract, InferRoute, Words, neutral_error
from panglot.web.origins import Origins
from panglot.web.room import Room
from panglot.web.spool import Spool

log = logging.getLogger("panglot.web")
ASGI = Callable[[Any, Any, Any], Awaitable[None]]
RECENT = 50


Recent = tuple[float, bytes, str, int, int, int, tuple[int, int, int, int, int]]
"""A request just answered, for the page: when, id, route, status, total and queue microseconds, stage times."""


class Front:
    """What the connections of one listener know: the package, its contract, and what they count and share."""

    def __init__(
        self,
        package: Package,
        settings: Settings,
        engine: Engine,
        metrics: Metrics,
        access: Access,
        contract: Contract,
        room: Room,
    ) -> None:
        self.package = package
        self.settings = settings
        self.engine = engine
        self.metrics = metrics
        self.access = access
        self.contract = contract
        self.room = room
        self.infer: dict[bytes, InferRoute] = {
            route.path.encode(): route for route in contract.routes if not route.prefix and route.method == "POST"
        }
        self._prefixes = [
            (route.path.encode(), route.suffix.encode(), route)
            for route in contract.routes
            if route.prefix and route.method == "POST"
        ]
        self._get_routes = [route for route in contract.routes if route.method == "GET"]
        self.app: ASGI | None = None
        self.try_line: Callable[[str], str] = lambda base: ""
        """A line of curl that asks the script at a base address, once it is loaded; from whoever makes the front."""
        self.public: frozenset[bytes] = frozenset()
        self.spool = Spool(settings.spool_bytes)
        self.draining = False
        self.began = time.monotonic()
        self.recent: deque[Recent] = deque(maxlen=RECENT)
        self.date = b""
        self.beginnings: dict[tuple[int, bytes], bytes] = {}
        """The first lines of answers by status and head, made once. See `exchange`."""
        self.origins = Origins(settings.cors_origin)
        self.observers: list[Callable[..., None]] = []
        """Called for every answered exchange with the exchange, status, stage times and total microseconds."""
        self._prefix = os.urandom(4).hex().encode()
        self._count = itertools.count(1)
        self.tick()

    def tick(self) -> None:
        """Renew the date line; called about once a second."""
        self.date = b"date: " + formatdate(time.time(), usegmt=True).encode() + b"\r\n"

    def new_request_id(self) -> bytes:
        return b"%s-%x" % (self._prefix, next(self._count))

    def script_failed(self, request_id: str, message: str, traceback: str) -> None:
        self.engine.trouble(request_id, message, traceback)

    def gauges(self) -> list[tuple[str, str, dict[str, str], float]]:
        about = "bytes of request bodies, and of answers that clients are slow to read"
        return [*self.engine.gauges(), ("panglot_held_bytes", about, {}, self.room.held)]

    def infer_route(self, path: bytes) -> InferRoute | None:
        """The script's route for a POST to this path, if there is one."""
        if self.contract.fold_case:
            path = path.lower()
        exact = self.infer.get(path)
        if exact is not None or not self._prefixes:
            return exact
        for start, end, route in self._prefixes:
            rest = path[len(start) : len(path) - len(end)]
            if path.startswith(start) and path.endswith(end) and rest and b"/" not in rest:
                return route
        return None

    def get_route(self, path: bytes) -> InferRoute | None:
        """The script's route for a GET of this path, if there is one."""
        for route in self._get_routes:
            start = route.path.encode()
            rest = path[len(start) :]
            if path == start if not route.prefix else path.startswith(start) and rest and b"/" not in rest:
                return route
        return None

    def is_public(self, path: bytes) -> bool:
        """Whether anyone may ask for this path: it is answered even when connections run out."""
        return path in self.public

    def error(self, route: InferRoute | None, fault: Fault, request_id: bytes) -> Words:
        """A fault in the words of the route's platform; in ours, should making those raise."""
        words = neutral_error if route is None else route.error or self.contract.error
        try:
            return words(fault, request_id.decode("latin-1"))
        except Exception:
            log.exception("the platform's words for '%s' failed", fault.code)
            return neutral_error(fault, request_id.decode("latin-1"))
