"""Fetching for the calls of an engine: a call whose worker gave it back waits here, and goes back with the bytes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence

from franca.engine.call import RUNNING, Call
from franca.fetching.fetcher import OK, STATUS, TOO_LARGE, Fetched, Fetcher, Limits
from franca.fetching.urls import Allowed
from franca.metrics import Metrics
from franca.settings import Settings
from franca_worker import wire


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
        if self._fetcher is not None:
            self._fetcher.close()

    async def _serve(self, call: Call, uris: Sequence[str], again: Callable[[Call], None]) -> None:
        if self._fetcher is None:
            self._fetcher = Fetcher(Limits.of(self.settings), Allowed(self.settings.url_allow))
        parts = await self._all(self._fetcher, call, uris)
        if call.state == RUNNING:
            attach(call, parts)
            again(call)

    async def _all(self, fetcher: Fetcher, call: Call, uris: Sequence[str]) -> list[Fetched]:
        most = fetcher.limits.urls
        if len(uris) > most:
            self.metrics.fetches["too_many"] += len(uris)
            text = f"a request may name at most {most} addresses"
            return [Fetched(STATUS, status=400, text=text)] * len(uris)
        request_id = call.request_id.decode("latin-1")
        found = await asyncio.gather(*(fetcher.fetch(uri, request_id) for uri in uris))
        for fetched in found:
            self.metrics.fetches[fetched.outcome] += 1
        return list(found)


def attach(call: Call, parts: Sequence[Fetched]) -> None:
    """Put what was fetched behind the body, and say in the head what is there."""
    own = call.size
    described: list[tuple[int, int, str]] = []
    bodies: list[bytes] = []
    for part in parts:
        if part.outcome == OK and call.grow(len(part.body)):
            described.append((len(part.body), part.status, ""))
            bodies.append(part.body)
        elif part.outcome == OK:
            described.append((-1, 503, "the server holds too many bytes; try again later"))
        elif part.outcome == TOO_LARGE:
            described.append((-1, 413, "what the uri leads to is too large"))
        else:
            described.append((-1, part.status, part.text))
    told = json.dumps({"body": own, "parts": described}).encode("ascii")
    call.head = wire.Head.unpack(call.head)._replace(fetched=told).pack()
    call.pieces = [*call.pieces, *bodies]
