"""Health/Watch: whoever wants to hear whether a service is served, and again whenever that changes."""

from __future__ import annotations

import asyncio
from typing import Protocol

from panglot.web.front import Front
from panglot.web.grpc.methods import watched

LOOK_EVERY = 0.5


class Watcher(Protocol):
    """Somebody who listens."""

    service: str

    def tell(self, status: bytes) -> None:
        """Send a HealthCheckResponse, unless it is the one that was sent last."""


class Watches:
    """All who listen. One timer looks for all of them, and runs only while there are some."""

    def __init__(self, front: Front) -> None:
        self._front = front
        self._watchers: dict[Watcher, None] = {}
        self._timer: asyncio.TimerHandle | None = None

    def add(self, watcher: Watcher) -> None:
        """Tell somebody the present state, and every further one until `remove`."""
        self._watchers[watcher] = None
        watcher.tell(watched(self._front, watcher.service))
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(LOOK_EVERY, self._look)

    def remove(self, watcher: Watcher) -> None:
        self._watchers.pop(watcher, None)
        if not self._watchers and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(LOOK_EVERY, self._look)
        known: dict[str, bytes] = {}
        for watcher in list(self._watchers):
            if watcher.service not in known:
                known[watcher.service] = watched(self._front, watcher.service)
            watcher.tell(known[watcher.service])
