"""`panglot serve`, from the plan of a server to the exit code."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import logging
import os
import signal
import socket
import ssl
import sys
import time
from typing import TYPE_CHECKING

import uvloop

from panglot import dialects
from panglot.engine.ray import needs
from panglot.errors import LoadError, Unanswered
from panglot.inputs.curl_line import how_to
from panglot.logs import journal as journals
from panglot.logs import lines as logs
from panglot.logs.journal import Journal
from panglot.logs.tracing import Tracing
from panglot.machine import devices, mps
from panglot.metrics.counters import Metrics
from panglot.serving import model_host
from panglot.serving.administration import Administration
from panglot.serving.forgetting import forget_tokens
from panglot.serving.job_host import JobHost
from panglot.serving.model_host import ModelHost, full_name
from panglot.serving.planning import ServingPlan, sleep_warnings
from panglot.serving.ports import FurtherPort, distinct
from panglot.serving.repository import FolderRepository
from panglot.serving.start_message import LoadingLine, StartMessage
from panglot.settings.loopback import UNIX
from panglot.web import app, listeners
from panglot.web.access import tokens as access
from panglot.web.access.key_watch import KeyWatch
from panglot.web.front import Front
from panglot.web.limits.quota import Quota
from panglot.web.models import Model, Repository
from panglot.web.tls import tls_context

if TYPE_CHECKING:
    from panglot.recording.recorder import Recorder

log = logging.getLogger("panglot")


def serve(plan: ServingPlan) -> None:
    """Serve until a signal. Raises StartError before the first ready, Unanswered when the drain time passes."""
    settings = plan.settings
    # First: `configure` logs to the `sys.stderr` that this replaces.
    journal = journals.begin(settings.log_queue)
    journal.on_room = logs.missing_lines
    logs.configure(settings.log_format, settings.log_level)
    for model in plan.models:
        if model.settings.ray:
            needs.check(model.package, model.settings)
    _tell_problems(plan)
    contracts = [dialects.contract(model.package, model.settings) for model in plan.models]
    rules = access.establish(settings, administrable=any(contract.admin for contract in contracts))
    # After `establish` has read the tokens, and before workers and installers start: they inherit the environment.
    forget_tokens()
    tls = tls_context(settings)
    sockets = listeners.bind_all(distinct(contracts), settings)
    if rules.is_closed and tls is None and not access.is_loopback(settings.host):
        log.warning("the token travels over plain HTTP: use --tls-cert and --tls-key, or a proxy that speaks TLS")
    plan = dataclasses.replace(plan, models=tuple(model_host.installed(model) for model in plan.models))
    with mps.running(settings.mps):
        _run(plan, rules, sockets, tls, journal)


def _run(
    plan: ServingPlan,
    rules: access.Access,
    sockets: list[socket.socket],
    tls: ssl.SSLContext | None,
    journal: Journal,
) -> None:
    """Serve on the main thread's loop; with --inline the script has the main thread."""
    if plan.settings.inline:
        from panglot.serving.inline import run_inline

        run_inline(lambda: Serving(plan, rules, sockets, tls, journal))
        return

    async def run() -> None:
        serving = Serving(plan, rules, sockets, tls, journal)
        serving.handle_signals()
        await serving.run()

    uvloop.run(run())


def _tell_problems(plan: ServingPlan) -> None:
    for model in plan.models:
        for problem in model.package.problems:
            log.warning("%s", problem, extra={"package": model.name})
        no_device = devices.lacking(model.settings.device, devices.count())
        if no_device:
            log.warning("%s", no_device, extra={"package": model.name})
        for warning in sleep_warnings(model.package, model.settings):
            log.warning("%s", warning, extra={"package": model.name})
    for warning in plan.warnings:
        log.warning("%s", warning, extra={"package": plan.models[0].name} if plan.planner is None else None)
    for name, error in plan.failed.items():
        stack = error.traceback.rstrip() if isinstance(error, LoadError) else ""
        log.error("%s is not served: %s", name, error.sentence(), extra={"package": name, "traceback": stack})


class Serving:
    """One running server: it owns the host of the models, the fronts and the listening sockets."""

    def __init__(
        self,
        plan: ServingPlan,
        rules: access.Access,
        sockets: list[socket.socket],
        tls: ssl.SSLContext | None = None,
        journal: Journal | None = None,
    ) -> None:
        self.plan = plan
        self.settings = settings = plan.settings
        self.rules = rules
        self.metrics = Metrics()
        self.recorder = self._recorder()
        if journal is not None:
            self.metrics.log_lines_dropped = lambda: journal.dropped
        quota = Quota(settings)
        self.model_host = ModelHost(plan, rules, quota, self.metrics)
        self.model_host.begin()
        self.models = self.model_host.models
        token = rules.is_closed
        contracts = [model.contract for model in self.models]
        self.ports = [FurtherPort(listener, self.models, token) for listener in distinct(contracts)]
        self.model_host.shared_ports = frozenset(port.listener.port for port in self.ports if port.listener.shared)
        served = (self.models, *(port.models for port in self.ports))
        self.fronts = [Front(models, settings, self.metrics, rules, quota) for models in served]
        self.job_host = JobHost(settings, self.models, rules.webhook_keys)
        for front in self.fronts:
            front.jobs = self.job_host.board
            front.app = app.build(front)
            if self.recorder is not None:
                from panglot.serving.recording import recorded

                front.recorded = functools.partial(recorded, recorder=self.recorder)
        if plan.planner is not None and plan.planner.folder is not None:
            repository = FolderRepository(self.model_host, plan.planner)
            self.models.absent = repository.absent
            self.models.loading = repository.loading
            self.fronts[0].repository = Repository(repository.load, repository.unload) if settings.admin else None
        for front in self.fronts:
            front.administration = functools.partial(Administration, self.models, self.fronts[0].repository)
        self.web = listeners.Listeners(self.fronts, sockets, tls)
        self.model_host.in_use = self.web.has_request_for
        self.url = self.web.urls[0]
        self.name = plan.default or "models"
        self.tracing = Tracing(settings.otel_endpoint, self.name) if settings.otel_endpoint else None
        for front in self.fronts:
            if self.tracing is not None:
                front.observers.append(self.tracing.answered)
            if settings.access_log:
                front.observers.append(logs.AccessLog(settings.access_log).answered)
        self.signals = 0
        self.stopped = asyncio.Event()
        self.forced = asyncio.Event()

    async def run(self) -> None:
        """Serve until a signal says to stop."""
        await self.web.start()
        self.job_host.start()
        tasks = [asyncio.ensure_future(front.live.run()) for front in self.fronts]
        further = [model for port in self.ports for model in port.models]
        background = [(model, model.contract.runs_with_server) for model in (*self.models, *further)]
        tasks += [asyncio.ensure_future(run(model, self.rules)) for model, run in background if run is not None]
        if self.rules.keys is not None:
            tasks.append(asyncio.ensure_future(KeyWatch(self.settings.keys, self.rules.keys).run()))
        try:
            await self._until_ready()
            if not self.stopped.is_set():
                self._say_ready()
                await self.stopped.wait()
            await self._drain()
        finally:
            for task in tasks:
                task.cancel()
            self.web.close()
            await self.job_host.close()
            await self.model_host.close()
            for front in self.fronts:
                front.spool.close()
            if self.tracing is not None:
                self.tracing.close()
            if self.recorder is not None:
                await asyncio.to_thread(self.recorder.close)
                log.info("recorded %s", self.recorder.summary())

    def _recorder(self) -> Recorder | None:
        """What records the traffic, where that is wanted. Raises StartError when its file cannot be created."""
        if not self.settings.record:
            return None
        from panglot.serving.recording import recorder_of

        rules = self.rules
        return recorder_of(self.settings, (rules.token, rules.control_token, rules.metrics_token))

    # Signals

    def handle_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
        # A terminal sends SIGHUP when it is closed. Without a terminal somebody asks for a reload.
        loop.add_signal_handler(signal.SIGHUP, self.stop if os.isatty(0) else self._reload)

    def stop(self) -> None:
        """Begin to drain; the second time, end at once."""
        self.signals += 1
        self.stopped.set()
        if self.signals > 1:
            self.forced.set()

    def _reload(self) -> None:
        log.info("SIGHUP: loading %s anew", ", ".join(self.models.names))
        self.model_host.reload()

    # Starting

    async def _until_ready(self) -> None:
        """Wait until every model is loaded. Raises LoadError when one cannot be."""
        names = list(self.models.names)
        shown = ", ".join(names) if len(names) <= 5 else f"{len(names)} models"
        log.info("listening on %s, loading %s", self.url, shown)
        for port, url in zip(self.ports, self.web.urls[1:], strict=True):
            log.info("listening on %s too, for %s", url, port.title)
        began = time.monotonic()
        loading = asyncio.ensure_future(self.model_host.load_all())
        stopped = asyncio.ensure_future(self.stopped.wait())
        with LoadingLine(self.model_host.step) as progress:
            while not (loading.done() or stopped.done()):
                await asyncio.wait({loading, stopped}, timeout=0.2, return_when=asyncio.FIRST_COMPLETED)
                progress.show(time.monotonic() - began)
        stopped.cancel()
        loading.cancel()
        # A task that was cancelled just now is not done yet: this is one that ended by itself.
        if loading.done():
            loading.result()
        self.model_host.check()

    def _say_ready(self) -> None:
        """Say what is served, and how to make a request."""
        boxed = self.settings.log_format == "human" and sys.stderr.isatty()
        base = "http://localhost" if self.url.startswith(UNIX) else self.url
        playground = {} if self.settings.no_playground else {"playground": f"{base}/"}
        pages = {**playground, "status": f"{base}/status", "docs": f"{base}/docs"}
        default = self.models.default
        if self.plan.planner is None and default is not None:
            line, how = default.curl_line(self.url), how_to(model_host.about(default))
            workers = _changing(default)
            StartMessage(default.name, default.package.dialect, self.url, pages, line, how, workers).say(boxed)
            return
        for model in self.models:
            more = ", the default" if model is default else ""
            more += f", {_changing(model)} workers" if _changing(model) else ""
            where = base + self._start(model)
            log.info("%s is ready on %s (%s%s)", full_name(model), where, model.package.dialect, more)
        first = default or self.models.get(self.models.names[0]) or next(iter(self.models))
        line, how = first.curl_line(self.url, self._start(first)), how_to(model_host.about(first))
        count = f"{len(self.models)} model{'s' if len(self.models) > 1 else ''}"
        StartMessage("the server", count, self.url, pages, line, how).say(boxed)

    def _start(self, model: Model) -> str:
        """What the paths of a model begin with."""
        newest = self.models.get(model.name) is model
        return f"/models/{model.name}" + ("" if newest else f"/versions/{model.version}")

    # Stopping

    async def _finish(self) -> None:
        await asyncio.gather(self.web.drain(), self.job_host.drain())

    async def _drain(self) -> None:
        """Answer the requests that were accepted. Raises Unanswered when the time is up or a second signal comes."""
        self.model_host.drain()
        self.job_host.board.stop_feeding()
        for front in self.fronts:
            front.draining = True
            front.live.end()
        log.info("stopping; %d request(s) to finish", self.web.unanswered())
        draining = asyncio.ensure_future(self._finish())
        forced = asyncio.ensure_future(self.forced.wait())
        await asyncio.wait({draining, forced}, timeout=self.settings.drain, return_when=asyncio.FIRST_COMPLETED)
        draining.cancel()
        forced.cancel()
        unanswered = self.web.unanswered()
        if unanswered:
            raise Unanswered(unanswered)


def _changing(model: Model) -> str:
    """How many workers each pool of a model has, where that changes by itself; else empty."""
    sizes = model.engine.sizes()
    shown = [f"{size['pool']} {size['workers']}".strip() for size in sizes]
    return ", ".join(shown) if any("changes" in size for size in sizes) else ""
