"""Serving a dialect that runs one batch at a time, by its routes, with or without capturing the script's output."""

from __future__ import annotations

import itertools
import os
from typing import List, Optional

from panglot_worker.dialects.base import Dialect, Parts, Request, Stages
from panglot_worker.items.capturing import Capture, capture_of
from panglot_worker.items.intake import Intake
from panglot_worker.items.running import Runner
from panglot_worker.line import wire
from panglot_worker.line.port import Port
from panglot_worker.scripts import current


class CapturingRunner(Runner):
    """Runs one item at a time, and captures what the script prints meanwhile."""

    capture: Capture

    def run_one(self, request: Request) -> None:
        with self.capture.of(request):
            super().run_one(request)

    def parts_of(self, request: Request) -> Parts:
        """How an answer in parts is written. The front gets all output of the call before the last part."""
        parts = super().parts_of(request)

        def end() -> wire.Buffer:
            self.capture.flush()
            return parts.end()

        return parts._replace(end=end)

    def failed_reply(self, request: Request, error: BaseException, stage: str, times: wire.Times) -> wire.Reply:
        reply = super().failed_reply(request, error, stage, times)
        # Before the reply is sent: the front drops output of a call that has its answer.
        self.capture.flush()
        return reply


class RoutedRunner(Runner):
    """Runs the frames of a worker whose script has several routes, each by a runner of its own."""

    def __init__(
        self,
        dialect: Dialect,
        stages: Stages,
        port: Port,
        rerun: bool,
        intake: Optional[Intake],
        capture: Optional[Capture],
    ) -> None:
        super().__init__(dialect, stages, port, rerun)
        self.usual = runner_of(dialect, stages._replace(by_route={}), port, rerun, intake, capture)
        """Runs all items whose route has no stages of its own."""
        self.runners = {
            route: runner_of(dialect, own._replace(by_route={}), port, rerun, intake, capture)
            for route, own in stages.by_route.items()
        }

    def run(self, requests: List[Request], flags: int) -> None:
        """Run the items of one frame; neighbours with the same route run together."""
        groups = [(route, list(alike)) for route, alike in itertools.groupby(requests, route_of)]
        for route, alike in groups:
            runner = self.runners.get(route, self.usual)
            runner.run(alike, flags)
            self.broken = runner.broken
            if self.broken:
                return

    def end(self, why: str) -> None:
        self.broken = why
        for runner in (self.usual, *self.runners.values()):
            runner.end(why)


def route_of(request: Request) -> bytes:
    return request.raw_head.split(b"\0", 2)[1]


def runner_of(
    dialect: Dialect,
    stages: Stages,
    port: Port,
    rerun: bool,
    intake: Optional[Intake],
    capture: Optional[Capture],
) -> Runner:
    """A runner for these stages: by routes or for all alike, capturing the script's output or not."""
    if stages.by_route:
        return RoutedRunner(dialect, stages, port, rerun, intake, capture)
    if capture is None:
        return Runner(dialect, stages, port, rerun, intake)
    runner = CapturingRunner(dialect, capture.around(stages), port, rerun, intake)
    runner.capture = capture
    return runner


def retain_files() -> None:
    """Copy files that lie in shared memory, before a fork: the child may read them when the call is over."""
    for request in current.running:
        request.retain_files()


def serve(dialect: Dialect, stages: Stages, port: Port, rerun: bool) -> str:
    """Run frames until the front says stop, or the script has spoilt the process. Returns why it ended."""
    if dialect.interrupter is not None:
        stages = dialect.interrupter.around(stages)
    intake = Intake(port, stages)
    dialect.serving = runner = runner_of(dialect, stages, port, rerun, intake, capture_of(dialect, stages, port))
    os.register_at_fork(before=retain_files)
    while True:
        frame = intake.next()
        kind, flags, _, _ = frame
        if kind == wire.RUN:
            runner.run(intake.requests(frame), flags)
            del frame  # So that a large body is released before the next frame comes.
            # The requests hold views of bodies, which must go before FREE is sent.
            current.running.clear()
            port.tell_free()
            if runner.broken:
                return runner.broken
            # Only when no frame waits: then all cancelled items are answered, and their ids would stay here for ever.
            if not port.pending:
                port.cancelled.clear()
        elif kind == wire.STOP:
            return ""
        else:
            raise wire.WireError("unexpected frame %s" % wire.NAMES.get(kind, kind))
