"""`panglot serve`, from the plan of a server to the exit code."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import logging
import os
import signal
import sys
import time
from typing import TYPE_CHECKING

import uvloop

from panglot.engine.workers.shares import WHOLE
from panglot.errors import Unanswered
from panglot.fronts.messages import Reloaded, ReloadWanted, Stopping
from panglot.inputs.curl_line import how_to
from panglot.logs import journal as journals
from panglot.logs import lines as logs
from panglot.logs.journal import Journal
from panglot.logs.tracing import Tracing
from panglot.machine import mps
from panglot.metrics.counters import Metrics
from panglot.serving.job_host import JobHost
from panglot.serving.models import host as model_host
from panglot.serving.models.administration import Administration
from panglot.serving.models.host import ModelHost, full_name
from panglot.serving.models.ports import FurtherPort, distinct
from panglot.serving.models.repository import FolderRepository
from panglot.serving.planning import ServingPlan
from panglot.serving.prepared import Prepared, prepare
from panglot.serving.start_message import LoadingLine, StartMessage
from panglot.settings.loopback import UNIX
from panglot.terminal.text import counted
from panglot.web import app, listeners
from panglot.web.access.key_watch import KeyWatch
from panglot.web.access.keys import Keys
from panglot.web.front import Front
from panglot.web.limits.quota import Quota
from panglot.web.listening.acceptor import Accept, SocketAcceptor
from panglot.web.models import Model, Repository

if TYPE_CHECKING:
    from panglot.fronts.member import Member
    from panglot.serving.fronts.figures import Figures
    from panglot.serving.fronts.jobs import JobsOfOthers
    from panglot.serving.fronts.models import ModelsOfFront
    from panglot.serving.fronts.recording import RecordingElsewhere, RecordingForFronts
    from panglot.serving.recording import OwnRecording

log = logging.getLogger("panglot")
LOOK_AGAIN = 0.05
"""Seconds between looks whether a reload has ended."""


def serve(plan: ServingPlan) -> None:
    """Serve until a signal. Raises StartError before the first ready, Unanswered when the drain time passes."""
    settings = plan.settings
    if settings.fronts != 1:
        _serve_by_several(plan)
        return
    # First: it replaces `sys.stderr`, and `configure` logs to the `sys.stderr` of its moment.
    journal = journals.begin(settings.log_queue)
    journal.on_space = logs.missing_lines
    logs.configure(settings.log_format, settings.log_level)
    prepared = prepare(plan)
    with mps.running(settings.mps):
        _run(prepared, journal)


def _serve_by_several(plan: ServingPlan) -> None:
    """Serve by several fronts, if the plan allows it. A server with one front loads no module of it."""
    from panglot.serving.fronts.start import number_of_fronts, serve_by_several

    logs.configure(plan.settings.log_format, plan.settings.log_level)
    fronts = number_of_fronts(plan)
    if fronts == 1:
        serve(dataclasses.replace(plan, settings=dataclasses.replace(plan.settings, fronts=1)))
        return
    # No journal yet: a thread does not survive a fork. Each front begins its own journal.
    prepared = prepare(plan)
    with mps.running(plan.settings.mps):
        serve_by_several(prepared, fronts, _run_front)


async def _run_front(prepared: Prepared, journal: Journal, member: Member) -> None:
    await Serving(prepared, journal, member).run()


def _run(prepared: Prepared, journal: Journal) -> None:
    """Serve on the main thread's loop; with --inline the script has the main thread, and the loop another."""
    if prepared.plan.settings.inline:
        from panglot.serving.inline import run_inline

        run_inline(lambda: Serving(prepared, journal))
        return

    async def run() -> None:
        serving = Serving(prepared, journal)
        serving.handle_signals()
        await serving.run()

    uvloop.run(run())


class Serving:
    """One running server. It owns the host of the models, the fronts and the listening sockets."""

    def __init__(self, prepared: Prepared, journal: Journal | None = None, member: Member | None = None) -> None:
        """Serve a prepared plan. With several fronts, `member` connects this one with their parent."""
        plan, rules, self.sockets, self._purposes, tls = prepared
        self.plan, self.rules, self.member = plan, rules, member
        self.settings = settings = plan.settings
        self.metrics = Metrics()
        self.recording = self._recording()
        if journal is not None:
            self.metrics.log_lines_dropped = lambda: journal.dropped
        quota = Quota(settings) if member is None else member.quota(settings)
        share = WHOLE if member is None else member.share
        self.model_host = ModelHost(plan, rules, quota, self.metrics, share)
        self.of_front = self._models_of_front()
        self.model_host.begin()
        self.models = self.model_host.models
        token = rules.is_closed
        contracts = [model.contract for model in self.models]
        self.ports = [FurtherPort(listener, self.models, token) for listener in distinct(contracts)]
        self.model_host.shared_ports = frozenset(port.listener.port for port in self.ports if port.listener.shared)
        served = (self.models, *(port.models for port in self.ports))
        self.fronts = [Front(models, settings, self.metrics, rules, quota) for models in served]
        self.job_host = self._host_of_jobs()
        for listener, front in enumerate(self.fronts):
            front.listener = listener
            front.jobs = self.job_host.jobs
            front.app = app.build(front)
            if self.recording is not None:
                from panglot.serving.recording import recorded

                front.recorded = functools.partial(recorded, recorder=self.recording.sink)
        self._use_folder()
        for front in self.fronts:
            front.administration = functools.partial(
                Administration, self.models, self.fronts[0].repository, self.of_front
            )
        accept: Accept = SocketAcceptor if member is None else member.acceptor
        self.web = listeners.Listeners(self.fronts, self.sockets, tls, accept)
        self.model_host.in_use = self._has_request_for
        self.url = self.web.urls[0]
        self.name = plan.default or "models"
        index = member.index if member is not None else None
        self.tracing = Tracing(settings.otel_endpoint, self.name, index) if settings.otel_endpoint else None
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
        if self.member is not None:
            tasks.append(asyncio.ensure_future(self._join(self.member).save()))
        further = [model for port in self.ports for model in port.models]
        background = [(model, model.contract.runs_with_server) for model in (*self.models, *further)]
        if self.member is None or self.member.index == 0:
            # Only in the front that has the workers.
            tasks += [asyncio.ensure_future(run(model, self.rules)) for model, run in background if run is not None]
        if self.rules.keys is not None:
            tasks.append(asyncio.ensure_future(self._key_watch(self.rules.keys).run()))
        try:
            await self._until_ready()
            if not self.stopped.is_set():
                if self.member is None or self.of_front is None:
                    self._say_ready()
                else:
                    self.of_front.begin_lending()
                    self.member.loaded()
                await self.stopped.wait()
            unanswered = await self._drain()
            # With several fronts the parent raises, for all of them.
            if self.member is not None:
                await self.member.drained(unanswered)
            elif unanswered:
                raise Unanswered(unanswered)
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
            if self.recording is not None:
                await self.recording.close()

    def _key_watch(self, keys: Keys) -> KeyWatch:
        """Puts changes of the file of keys into force. Every front reads the file, and the first logs the changes."""
        others = self.member is not None and self.member.index > 0
        return KeyWatch(self.settings.keys, keys, logging.DEBUG if others else logging.INFO)

    def _host_of_jobs(self) -> JobHost | JobsOfOthers:
        """The jobs of the server. With several fronts, the first front stores them. Raises StartError."""
        if self.member is None:
            return JobHost(self.settings, self.models, self.rules.webhook_keys)
        from panglot.serving.fronts.jobs import host_of_jobs

        return host_of_jobs(self.settings, self.models, self.rules.webhook_keys, self.member)

    def _recording(self) -> OwnRecording | RecordingForFronts | RecordingElsewhere | None:
        """The recording of the traffic, if there is to be one. Raises StartError when its file cannot be created."""
        if not self.settings.record:
            return None
        secrets = (self.rules.token, self.rules.control_token, self.rules.metrics_token)
        if self.member is not None:
            from panglot.serving.fronts.recording import recording_of_front

            return recording_of_front(self.settings, secrets, self.member)
        from panglot.serving.recording import own_recording

        return own_recording(self.settings, secrets)

    def _has_request_for(self, model: Model) -> bool:
        """Whether a request for a model is under way here, or may still come from another front."""
        return self.web.has_request_for(model) or (self.of_front is not None and self.of_front.is_needed(model))

    def _models_of_front(self) -> ModelsOfFront | None:
        """With several fronts: loads models, and lets them sleep, by the orders of the parent."""
        if self.member is None:
            return None
        from panglot.serving.fronts.models import ModelsOfFront

        return ModelsOfFront(self.model_host, self.member)

    def _use_folder(self) -> None:
        """Let clients load and unload the models of the folder, if there is a folder."""
        plan = self.plan
        if plan.planner is None or plan.folder is None:
            return
        fixed = plan.fixed if self.member is None else self.member.catalog.fixed
        repository = FolderRepository(self.model_host, plan.planner, fixed)
        if self.of_front is not None:
            self.of_front.use(repository)
        changes = repository if self.of_front is None else self.of_front
        self.models.absent, self.models.loading = repository.absent, changes.loading
        if self.settings.admin:
            self.fronts[0].repository = self.model_host.repository = Repository(changes.load, changes.unload)

    # Signals, or a parent

    def _join(self, member: Member) -> Figures:
        """Let the parent of several fronts decide when this one reloads and stops. Returns the figures of all."""
        from panglot.serving.fronts.figures import Figures

        def reload_own(model: str) -> None:
            self.model_host.reload(model)
            self._reloading = asyncio.ensure_future(self._until_reloaded(member))

        member.on_ready, member.on_reload = self._say_ready, reload_own
        member.on_drain, member.on_force = self.stopped.set, self.forced.set
        for front in self.fronts:
            front.reload = lambda model: member.tell(ReloadWanted(model))
            front.others_ready = lambda: member.server_ready
        self.model_host.on_change = lambda hosted: member.tell(ReloadWanted(hosted.model.name))
        figures = Figures(member, self.fronts)
        self.model_host.described_elsewhere = figures.description
        self.model_host.workers_elsewhere = figures.workers
        figures.described = self.model_host.description_of
        # Last: messages of the parent, and questions of other fronts, come from here on.
        member.begin()
        member.started()
        return figures

    async def _until_reloaded(self, member: Member) -> None:
        try:
            while self.model_host.is_reloading:  # noqa: ASYNC110  a reload takes seconds, and has no single end
                await asyncio.sleep(LOOK_AGAIN)
            await self.model_host.describe_again()
        except Exception:
            log.exception("a reload could not be followed to its end")
        # Only now does the parent let the next front reload: without this message no front would ever reload again.
        member.tell(Reloaded())

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
        log.info("SIGHUP: loading %s again", ", ".join(self.models.names))
        self.model_host.reload()

    # Starting

    async def _until_ready(self) -> None:
        """Wait until every model is loaded. Raises LoadError when one cannot be."""
        names = list(self.models.names)
        shown = ", ".join(names) if len(names) <= 5 else f"{len(names)} models"
        if self.member is None:
            self._say_listening(shown)
        began = time.monotonic()
        loading = asyncio.ensure_future(self.model_host.load_all())
        stopped = asyncio.ensure_future(self.stopped.wait())
        with LoadingLine(self.model_host.step) as progress:
            while not (loading.done() or stopped.done()):
                await asyncio.wait({loading, stopped}, timeout=0.2, return_when=asyncio.FIRST_COMPLETED)
                progress.show(time.monotonic() - began)
        stopped.cancel()
        loading.cancel()
        # A task that was cancelled just now is not done yet: a done task has ended by itself.
        if loading.done():
            loading.result()
        self.model_host.check()

    def _say_listening(self, shown: str) -> None:
        if self.sockets.grpc is not None:
            log.info("listening on %s too, for gRPC", listeners.grpc_url(self.sockets.grpc, self.settings))
        log.info("listening on %s, loading %s", self.url, shown)
        for purpose, url in zip(self._purposes, self.web.urls[1:], strict=True):
            log.info("listening on %s too, for %s", url, purpose)

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
        count = counted(len(self.models), "model")
        StartMessage("the server", count, self.url, pages, line, how).say(boxed)

    def _start(self, model: Model) -> str:
        """The beginning of all paths of a model."""
        newest = self.models.get(model.name) is model
        return f"/models/{model.name}" + ("" if newest else f"/versions/{model.version}")

    # Stopping

    async def _finish(self) -> None:
        await asyncio.gather(self.web.drain(), self.job_host.drain())

    async def _drain(self) -> int:
        """Answer the accepted requests. Returns the number without an answer, by lack of time or by a second signal."""
        self.model_host.drain()
        self.job_host.stop_feeding()
        for front in self.fronts:
            front.draining = True
            front.live.end()
        if self.member is None:
            log.info("stopping; %s to finish", counted(self.web.unanswered(), "request"))
        else:
            self.member.tell(Stopping(self.web.unanswered()))
        draining = asyncio.ensure_future(self._finish())
        forced = asyncio.ensure_future(self.forced.wait())
        await asyncio.wait({draining, forced}, timeout=self.settings.drain, return_when=asyncio.FIRST_COMPLETED)
        draining.cancel()
        forced.cancel()
        return self.web.unanswered()


def _changing(model: Model) -> str:
    """The number of workers in each pool of a model, if it changes by itself; else empty."""
    sizes = model.engine.sizes()
    shown = [f"{size['pool']} {size['workers']}".strip() for size in sizes]
    return ", ".join(shown) if any("changes" in size for size in sizes) else ""
