"""`panglot serve`, from a recognised package to the exit code."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import logging
import os
import signal
import socket
import sys
import time

import uvloop

from panglot import asking, devices, dialects, linking
from panglot import journal as journals
from panglot import log as logs
from panglot.asking.base import About
from panglot.asking.try_line import how_to, try_line
from panglot.asking.trying import ToTry, to_try
from panglot.engine.engine import LocalEngine
from panglot.errors import Unanswered
from panglot.file_changes import changes
from panglot.journal import Journal
from panglot.metrics import Metrics
from panglot.package import Package
from panglot.settings import Settings
from panglot.settings.loopback import UNIX
from panglot.start_message import LoadingLine, StartMessage
from panglot.tracing import Tracing
from panglot.web import access, app, listeners
from panglot.web.front import Front
from panglot.web.models import FIRST_VERSION, Model, only
from panglot.web.room import Room

log = logging.getLogger("panglot")
WORKER_STOP = 2.0


def serve(package: Package, settings: Settings) -> None:
    """Serve until told to stop. Raises StartError before the first ready, Unanswered when the drain time passes."""
    journal = journals.begin(settings.log_queue)
    journal.on_room = logs.missing_lines
    logs.configure(settings.log_format, settings.log_level)
    for problem in package.problems:
        log.warning("%s", problem, extra={"package": package.name})
    no_device = devices.lacking(settings.device, devices.count())
    if no_device:
        log.warning("%s", no_device, extra={"package": package.name})
    rules = access.establish(settings)
    tls = access.tls_context(settings)
    sockets = listeners.bind_all(dialects.contract(package, settings), settings)
    if rules.token and tls is None and not access.is_loopback(settings.host):
        log.warning("the token travels over plain HTTP: use --tls-cert and --tls-key, or a proxy that speaks TLS")
    if settings.install:
        from panglot.tools import install

        settings = dataclasses.replace(settings, python=install.environment(package, settings))
    with linking.fixed_paths(package, settings.link_paths):
        _run(package, settings, rules, sockets, tls, journal)


def _run(
    package: Package,
    settings: Settings,
    rules: access.Access,
    sockets: list[socket.socket],
    tls: access.SSLContext | None,
    journal: Journal,
) -> None:
    if settings.inline:
        from panglot.inline import run_inline

        run_inline(lambda: Serving(package, settings, rules, sockets, tls, journal))
        return

    async def run() -> None:
        serving = Serving(package, settings, rules, sockets, tls, journal)
        serving.handle_signals()
        await serving.run()

    uvloop.run(run())


class Serving:
    """One running server: it owns the engine, the fronts and the listening sockets."""

    def __init__(
        self,
        package: Package,
        settings: Settings,
        rules: access.Access,
        sockets: list[socket.socket],
        tls: access.SSLContext | None = None,
        journal: Journal | None = None,
    ) -> None:
        self.package = package
        self.settings = settings
        self.rules = rules
        self.metrics = Metrics()
        if journal is not None:
            self.metrics.log_lines_dropped = lambda: journal.dropped
        self.engine = LocalEngine(package, settings, self.metrics)
        contract = dialects.contract(package, settings)
        room = Room(settings)
        self.model = Model(
            package.name, FIRST_VERSION, package, settings, self.engine, self.metrics, contract, room,
        )  # fmt: skip
        self.views = [self.model, *(self.model.at(listener.contract) for listener in contract.listeners)]
        """The model as each front has it."""
        for view in self.views:
            view.try_line = functools.partial(_try_line, view, bool(rules.token))
            view.to_try = functools.partial(_to_try, view)
        self.fronts = [Front(only(view), settings, self.metrics, rules, room) for view in self.views]
        for front in self.fronts:
            front.app = app.build(front)
        self.web = listeners.Listeners(self.fronts, sockets, tls)
        self.url = self.web.urls[0]
        self.tracing = Tracing(settings.otel_endpoint, package.name) if settings.otel_endpoint else None
        for front in self.fronts:
            if self.tracing is not None:
                front.observers.append(self.tracing.answered)
            if settings.access_log:
                front.observers.append(logs.AccessLog(settings.access_log, package.name).answered)
        self.signals = 0
        self.stopped = asyncio.Event()
        self.forced = asyncio.Event()

    async def run(self) -> None:
        """Serve until told to stop."""
        await self.web.start()
        await self.engine.start()
        watchers = [asyncio.ensure_future(self._watch())] if self.settings.reload else []
        watchers += [asyncio.ensure_future(front.live.run()) for front in self.fronts]
        background = [(view, view.contract.runs_with_server) for view in self.views]
        watchers += [asyncio.ensure_future(run(view, self.rules)) for view, run in background if run is not None]
        try:
            await self._until_ready()
            if not self.stopped.is_set():
                self._say_ready()
                await self.stopped.wait()
            await self._drain()
        finally:
            for watcher in watchers:
                watcher.cancel()
            self.web.close()
            await self.engine.stop(WORKER_STOP)
            for front in self.fronts:
                front.spool.close()
            if self.tracing is not None:
                self.tracing.close()

    # Signals

    def handle_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
        loop.add_signal_handler(signal.SIGHUP, self.stop if os.isatty(0) else self._reload)

    def stop(self) -> None:
        """Begin to drain; the second time, end at once."""
        self.signals += 1
        self.stopped.set()
        if self.signals > 1:
            self.forced.set()

    def _reload(self) -> None:
        log.info("SIGHUP: loading %s anew", self.package.name)
        self.engine.reload()

    async def _watch(self) -> None:
        async for names in changes(self.package.folder):
            log.info("changed: %s; loading %s anew", ", ".join(names), self.package.name)
            self.engine.reload()

    # Starting

    async def _until_ready(self) -> None:
        log.info("listening on %s, loading %s", self.url, self.package.name)
        for view, url in zip(self.views[1:], self.web.urls[1:], strict=True):
            log.info("listening on %s too, for %s", url, view.contract.routes[0].target)
        began = time.monotonic()
        ready = asyncio.ensure_future(self.engine.ready.wait())
        stopped = asyncio.ensure_future(self.stopped.wait())
        with LoadingLine(self._step) as progress:
            while not (ready.done() or stopped.done()):
                await asyncio.wait({ready, stopped}, timeout=0.2, return_when=asyncio.FIRST_COMPLETED)
                progress.show(time.monotonic() - began)
        ready.cancel()
        stopped.cancel()
        if self.engine.failed is not None:
            raise self.engine.failed

    def _step(self) -> str:
        steps = [worker.step for pool in self.engine.pools for worker in pool.workers if worker.step]
        return steps[0] if steps else "starting"

    def _say_ready(self) -> None:
        base = "http://localhost" if self.url.startswith(UNIX) else self.url
        pages = {"status": f"{base}/", "docs": f"{base}/docs"}
        line, how = self.model.try_line(self.url), how_to(_about(self.model))
        message = StartMessage(self.package.name, self.package.dialect, self.url, pages, line, how)
        message.say(boxed=self.settings.log_format == "human" and sys.stderr.isatty())

    # Stopping

    async def _drain(self) -> None:
        """Answer the requests that were accepted. Raises Unanswered when the time is up or a second signal comes."""
        self.engine.draining = True
        for front in self.fronts:
            front.draining = True
            front.live.end()
        if any(view.contract.refuses_in_drain for view in self.views):
            self.engine.closed = True
        log.info("stopping; %d request(s) to finish", self.web.unanswered())
        draining = asyncio.ensure_future(self.web.drain())
        forced = asyncio.ensure_future(self.forced.wait())
        await asyncio.wait({draining, forced}, timeout=self.settings.drain, return_when=asyncio.FIRST_COMPLETED)
        draining.cancel()
        forced.cancel()
        unanswered = self.web.unanswered()
        if unanswered:
            raise Unanswered(unanswered)


def _try_line(model: Model, token: bool, base: str) -> str:
    """The line of curl that asks a model, by what its worker says about it."""
    return try_line(base, _about(model), model.package.folder, token)


def _to_try(model: Model) -> ToTry:
    return to_try(model.package, _about(model))


def _about(model: Model) -> About:
    route = model.contract.routes[0]
    path = route.path + ("any" if route.prefix else "")
    return asking.about_package(model.package, path, model.description.get("api", {}))
