"""Runs a package without a server: by the engine alone, with one call at a time or several."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlencode

from panglot import dialects
from panglot.engine.call import Call, Fault
from panglot.engine.engine import LocalEngine
from panglot.engine.interface import Trouble
from panglot.errors import StartError
from panglot.inputs.base import ClientRequest
from panglot.metrics.counters import Metrics
from panglot.packages.package import Package
from panglot.serving.links import Links
from panglot.settings import Settings
from panglot.terminal.text import counted
from panglot.web.path_template import template
from panglot_worker.line import wire
from panglot_worker.line.description import Description

WORKER_STOP = 2.0
PASSING = ("back_off", "queue_full", "queue_timeout")
"""Codes of faults after which a call may be submitted again."""
PAUSE = 0.1
RESULTS = "application/json, application/x-ndjson, */*"


@dataclass(frozen=True)
class OfflineReply:
    """An answer. `times` are microseconds by stage. Where the script failed, `error` and `traceback` are its own."""

    status: int
    content_type: str
    body: bytes
    times: tuple[int, ...] = wire.NO_TIMES
    total_us: int = 0
    error: str = ""
    traceback: str = ""
    code: str = ""
    """The code of a fault; docs/reference/http.md lists them."""

    @property
    def failed(self) -> bool:
        return self.status >= 400

    def value(self) -> Any:
        """The answer as a value: parsed JSON, a list for JSON lines, text, or a note on its size and type."""
        kind = self.content_type.partition(";")[0].strip().lower()
        try:
            if kind == "application/x-ndjson":
                return [json.loads(line) for line in self.body.splitlines() if line.strip()]
            if kind.endswith("json") or kind == "text/html":
                return json.loads(self.body)
            if kind.startswith("text/"):
                return self.body.decode()
        except (ValueError, UnicodeDecodeError):
            pass
        return f"<{counted(len(self.body), 'byte')} of {kind or 'nothing'}>"


class QuietEngine(LocalEngine):
    """An engine that stores failures for the results, and does not log them."""

    def trouble(self, request_id: str, message: str, traceback: str, worker: int | None = None) -> None:
        self.troubles.append(Trouble(time.time(), request_id, message, traceback))


class Offline:
    """A loaded package. `path` is its first route, `api` the worker's description of it."""

    def __init__(self, package: Package, settings: Settings, engine: LocalEngine) -> None:
        self.package = package
        self.settings = settings
        self.engine = engine
        self.contract = dialects.contract(package, settings)
        if not self.contract.routes:
            raise StartError("nothing can be sent: the package answers no requests", file=str(package.script))
        self.path = self.contract.routes[0].sample(package.name)
        self.sent = 0

    @property
    def api(self) -> Description:
        return cast(Description, self.engine.description.get("api") or {})

    async def send(self, request: ClientRequest, accept: str = RESULTS) -> OfflineReply:
        """Run one request through the package. A failure is a reply too. Raises OSError for an unreadable input."""
        content_type, body = request.encoded()
        self.sent += 1
        call = Waiting(f"run-{self.sent}".encode())
        path, _, query = request.path.partition("?")
        route, segments = self._route(path)
        head = wire.Head(call.request_id, route, content_type.encode(), accept.encode(), path.encode(), query.encode())
        call.head = head._replace(method=request.method.encode(), segments=segments).pack()
        call.pieces, call.size = [body], len(body)
        call.arrived = self.engine.clock()
        call.deadline = call.arrived + self.settings.timeout
        began = time.perf_counter()
        fault = self.engine.submit(call)
        while fault is not None:
            if fault.code not in PASSING or self.engine.clock() > call.deadline:
                return _refused(fault)
            # A worker that died on an earlier input is being replaced.
            await asyncio.sleep(PAUSE)
            # The wait for another worker is not part of this input's time.
            began = time.perf_counter()
            fault = self.engine.submit(call)
        answer = await call.answer
        taken = int((time.perf_counter() - began) * 1e6)
        return dataclasses.replace(self._explained(answer, call), total_us=taken)

    def _route(self, path: str) -> tuple[bytes, bytes]:
        """The route that the worker gets for a path, and the free segments of the path."""
        # Routes without free segments first: a free segment matches their paths too.
        for route in sorted(self.contract.routes, key=lambda route: route.is_free):
            values = template(route.path, self.contract.fold_case).match(path.encode())
            if values is not None:
                return route.worker_route.encode(), urlencode(values).encode()
        return self.contract.routes[0].worker_route.encode(), b""

    def _explained(self, answer: OfflineReply, call: Call) -> OfflineReply:
        """The reply, with the error and traceback that the engine has stored, where the reply has none."""
        # From the latest on. The trouble of a worker that died has no request id.
        name = call.request_id.decode()
        for trouble in reversed(self.engine.troubles):
            died = answer.code == "worker_died" and not trouble.request_id
            if died or (trouble.request_id == name and not answer.error):
                return dataclasses.replace(answer, error=trouble.message, traceback=trouble.traceback)
        return answer


class Waiting(Call):
    """A call with a future for its answer. The chunks of a stream are joined."""

    __slots__ = ("answer", "begun")

    def __init__(self, request_id: bytes) -> None:
        super().__init__()
        self.request_id = request_id
        self.answer: asyncio.Future[OfflineReply] = asyncio.get_running_loop().create_future()
        self.begun: list[bytes] = []

    def reply(self, reply: wire.Reply) -> None:
        """Set the answer once it is complete, or store a chunk of it."""
        # The answer may come after the end of a run that was stopped, which has cancelled the future.
        if self.answer.done():
            return
        if reply.flags & wire.ERROR:
            self.answer.set_result(_failed(reply))
            return
        self.begun.append(bytes(reply.body))
        if not reply.flags & wire.MORE:
            content_type = reply.head.split(b"\0")[0].decode("latin-1")
            self.answer.set_result(OfflineReply(reply.status, content_type, b"".join(self.begun), reply.times))

    def fail(self, fault: Fault) -> None:
        if not self.answer.done():
            self.answer.set_result(_refused(fault))


def _failed(reply: wire.Reply) -> OfflineReply:
    problem = json.loads(bytes(reply.body))
    traceback = str(problem["traceback"])
    error = traceback.strip().rpartition("\n")[2] or str(problem["message"])
    return OfflineReply(reply.status, "", b"", reply.times, 0, error, traceback)


def _refused(fault: Fault) -> OfflineReply:
    return OfflineReply(fault.status, "", b"", error=fault.message, code=fault.code)


@asynccontextmanager
async def offline(package: Package, settings: Settings) -> AsyncIterator[Offline]:
    """The package, loaded. Raises LoadError when its script does not load.

    Settings have the same meaning as for a server. `dev` is on, so that failures have a traceback.
    """
    if settings.install:
        from panglot.packages import install

        settings = dataclasses.replace(settings, python=install.environment(package, settings))
    settings = dataclasses.replace(settings, dev=True)
    with Links().fixed_paths(package, settings.link_paths):
        engine = QuietEngine(package, settings, Metrics())
        await engine.start()
        try:
            await engine.ready.wait()
            if engine.failed is not None:
                raise engine.failed
            yield Offline(package, settings, engine)
        finally:
            await engine.stop(WORKER_STOP)
