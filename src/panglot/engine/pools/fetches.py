"""Calls that a worker gave back with addresses to fetch: they wait here, and run again with the bytes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence

from panglot.engine.call import RUNNING, Call
from panglot.fetching.fetcher import OK, TOO_LARGE, Fetched, Fetcher, FetchLimits
from panglot.metrics.counters import Metrics
from panglot.settings import Settings
from panglot_worker.line import wire
from panglot_worker.net.hosts import Allowed

TOO_MANY, NO_MEMORY = "too_many", "no_room"


class Fetches:
    """Fetches the addresses of such calls, and passes the calls on. Everything here runs on the event loop's thread."""

    def __init__(self, settings: Settings, metrics: Metrics) -> None:
        self.settings = settings
        self.metrics = metrics
        self._fetcher: Fetcher | None = None
        self._open: dict[Call, asyncio.Task[None]] = {}

    def begin(self, call: Call, uris: Sequence[str], again: Callable[[Call], None]) -> None:
        """Fetch all addresses at once, attach the bytes, and pass the call to `again`, unless it is cancelled first."""
        task = asyncio.get_running_loop().create_task(self._serve(call, uris, again))
        # Meanwhile the call is in no queue and with no worker: only this entry leads to it.
        self._open[call] = task
        task.add_done_callback(lambda _: self._open.pop(call, None))

    def cancel(self, call: Call) -> None:
        """Stop fetching for a call that was cancelled or has its answer."""
        task = self._open.pop(call, None)
        if task is not None:
            task.cancel()

    def close(self) -> None:
        for task in list(self._open.values()):
            task.cancel()

    async def _serve(self, call: Call, uris: Sequence[str], again: Callable[[Call], None]) -> None:
        if self._fetcher is None:
            self._fetcher = Fetcher(FetchLimits.of(self.settings), Allowed(self.settings.url_allow))
        # Before the fetches, each of which adds to `size`. Out of shared memory: fetched bytes go behind the body.
        call.copy_out()
        own = call.size
        most = self._fetcher.limits.urls
        if len(uris) > most:
            text = f"a request may name at most {most} addresses"
            results = [Fetched(TOO_MANY, status=400, text=text)] * len(uris)
        else:
            results = list(await asyncio.gather(*(self._fetch(self._fetcher, call, uri) for uri in uris)))
        for result in results:
            self.metrics.fetches[result.outcome] += 1
        if call.state == RUNNING:
            attach(call, own, results)
            again(call)

    async def _fetch(self, fetcher: Fetcher, call: Call, uri: str) -> Fetched:
        """Fetch one address. Its bytes count as memory of the request from the moment they are there."""
        fetched = await fetcher.fetch(uri, call.request_id.decode("latin-1"))
        if fetched.outcome == TOO_LARGE:
            return Fetched(TOO_LARGE, status=413, text="what the uri leads to is too large")
        # A call that was cancelled must not grow: its memory has been released already.
        if fetched.outcome == OK and call.state == RUNNING and not call.grow(len(fetched.body)):
            return Fetched(NO_MEMORY, status=503, text="the server holds too many bytes; try again later")
        return fetched


def attach(call: Call, own: int, results: Sequence[Fetched]) -> None:
    """Put the fetched bytes behind the body, which has `own` bytes, and describe the parts in the head."""
    described = [(len(result.body) if result.outcome == OK else -1, result.status, result.text) for result in results]
    layout = json.dumps({"body": own, "parts": described}).encode("ascii")
    call.head = wire.Head.unpack(call.head)._replace(fetched=layout).pack()
    call.pieces = [*call.pieces, *(result.body for result in results if result.outcome == OK)]
