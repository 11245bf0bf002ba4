"""Fetching for the calls of an engine: a call whose worker gave it back waits here, and goes back with the bytes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence

from panglot.engine.call import RUNNING, Call
from panglot.fetching.fetcher import OK, TOO_LARGE, Fetched, Fetcher, Limits
from panglot.metrics import Metrics
from panglot.settings import Settings
from panglot_worker import wire
from panglot_worker.net.hosts import Allowed

TOO_MANY, NO_ROOM = "too_many", "no_room"


class Fetching:
    """Holds calls between two visits to a worker. Everything here runs on the event loop's thread."""

    def __init__(self, settings: Settings, metrics: Metrics) -> None:
        self.settings = settings
        self.metrics = metrics
        self._fetcher: Fetcher | None = None
        self._open: dict[Call, asyncio.Task[None]] = {}

    def begin(self, call: Call, uris: Sequence[str], again: Callable[[Call], None]) -> None:
        """Fetch all of them at once, attach what came, and give the call to `again`; not when it is forgotten."""
        task = asyncio.get_running_loop().create_task(self._serve(call, uris, again))
        self._open[call] = task
        task.add_done_callback(lambda _: self._open.pop(call, None))

    def forget(self, call: Call) -> None:
        """The caller has gone, or has its answer."""
        task = self._open.pop(call, None)
        if task is not None:
            task.cancel()

    def close(self) -> None:
        for task in list(self._open.values()):
            task.cancel()

    async def _serve(self, call: Call, uris: Sequence[str], again: Callable[[Call], None]) -> None:
        if self._fetcher is None:
            self._fetcher = Fetcher(Limits.of(self.settings), Allowed(self.settings.url_allow))
        own = call.size
        most = self._fetcher.limits.urls
        if len(uris) > most:
            text = f"a request may name at most {most} addresses"
            parts = [Fetched(TOO_MANY, status=400, text=text)] * len(uris)
        else:
            parts = list(await asyncio.gather(*(self._one(self._fetcher, call, uri) for uri in uris)))
        for part in parts:
            self.metrics.fetches[part.outcome] += 1
        if call.state == RUNNING:
            attach(call, own, parts)
            again(call)

    async def _one(self, fetcher: Fetcher, call: Call, uri: str) -> Fetched:
        """What an address leads to, counted as held from the moment it is there."""
        part = await fetcher.fetch(uri, call.request_id.decode("latin-1"))
        if part.outcome == TOO_LARGE:
            return Fetched(TOO_LARGE, status=413, text="what the uri leads to is too large")
        # A call that was given up must not grow: what it held has been counted out already.
        if part.outcome == OK and call.state == RUNNING and not call.grow(len(part.body)):
            return Fetched(NO_ROOM, status=503, text="the server holds too many bytes; try again later")
        return part


def attach(call: Call, own: int, parts: Sequence[Fetched]) -> None:
    """Put what was fetched behind the body, which has `own` bytes, and say in the head what is there."""
    described = [(len(part.body) if part.outcome == OK else -1, part.status, part.text) for part in parts]
    told = json.dumps({"body": own, "parts": described}).encode("ascii")
    call.head = wire.Head.unpack(call.head)._replace(fetched=told).pack()
    call.pieces = [*call.pieces, *(part.body for part in parts if part.outcome == OK)]
