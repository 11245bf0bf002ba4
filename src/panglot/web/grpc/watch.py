"""Health/Watch: clients hear whether a service is served, and again whenever that changes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from panglot.web.front import Front
from panglot.web.grpc.methods import watched

if TYPE_CHECKING:
    from panglot.web.http2.watch import Watch

LOOK_EVERY = 0.5


class Watches:
    """All calls that watch. One timer looks for all of them, and runs only while there are some."""

    def __init__(self, front: Front) -> None:
        self._front = front
        self._watches: dict[Watch, None] = {}
        self._timer: asyncio.TimerHandle | None = None

    def add(self, watch: Watch) -> None:
        """Tell a call the present state, and every further one until `remove`."""
        self._watches[watch] = None
        # At once: the protocol of health checks has the present state sent first.
        watch.tell(watched(self._front, watch.service))
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(LOOK_EVERY, self._look)

    def remove(self, watch: Watch) -> None:
        self._watches.pop(watch, None)
        if not self._watches and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        # Before the telling: should it end the last watch, `remove` finds this timer and cancels it.
        self._timer = asyncio.get_running_loop().call_later(LOOK_EVERY, self._look)
        known: dict[str, bytes] = {}
        # A list of its own, in case that telling ends a call.
        for watch in list(self._watches):
            if watch.service not in known:
                known[watch.service] = watched(self._front, watch.service)
            watch.tell(known[watch.service])
