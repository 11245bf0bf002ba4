"""The figures of the status page: a sample each second, ten minutes of them, sent to every page that is open.

They are put together and written down once a second, however many look.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any

import orjson

import panglot
from panglot.engine import interface as states
from panglot.engine.interface import Trouble
from panglot.machine.gpu_memory import Gpus
from panglot.terminal.text import visible
from panglot.web.models import Model
from panglot.web.pages.failures import Failures
from panglot.web.pages.log_tail import LogTail
from panglot.web.pages.sampling import Counted, Processes, Sample, between, counted

if TYPE_CHECKING:
    from panglot.web.front import Front, Recent

EVERY = 1.0
MINUTES = 10
STAGES = ("queue", "decode", "preprocess", "inference", "postprocess", "encode")


class Live:
    """Samples one front. `run` is a task for as long as the server runs."""

    def __init__(self, front: Front) -> None:
        self.front = front
        self.history: deque[Sample] = deque(maxlen=int(MINUTES * 60 / EVERY))
        self.log = LogTail()
        self.watching = 0
        """How many look."""
        self.failures = Failures(front.settings.dev)
        self._before = Counted(time.time())
        self._processes = Processes()
        self._costs: dict[int, tuple[float, int]] = {}
        self._gpus = Gpus()
        self._last: Recent | None = None
        self._tick = b""
        self._next = asyncio.Event()
        self._ended = False

    async def run(self) -> None:
        """Sample until cancelled."""
        logger = logging.getLogger("panglot")
        logger.addHandler(self.log)
        self.sample(time.time())
        try:
            while True:
                await asyncio.sleep(EVERY)
                tick = self.sample(time.time())
                if self.watching:
                    self._gpus.look(time.monotonic())
                    self._tell(tick)
        finally:
            logger.removeHandler(self.log)
            self.end()

    def end(self) -> None:
        """Let all that look go, so that the server can stop."""
        self._ended = True
        self._next.set()

    def _tell(self, tick: dict[str, Any]) -> None:
        self._tick = _event("tick", tick)
        # Everyone who waits has this event; who comes back later waits for the new one.
        self._next.set()
        self._next = asyncio.Event()

    # Looking

    async def look(self) -> dict[str, Any]:
        """All that is known now, for who looks once."""
        await self._gpus.renewed(time.monotonic())
        return self.snapshot()

    async def events(self) -> AsyncIterator[bytes]:
        """Server-sent events: all that is known, then what changes. Who reads slowly misses ticks, not figures."""
        self.watching += 1
        try:
            yield _event("snapshot", self.snapshot())
            while not self._ended:
                await self._next.wait()
                if not self._ended:
                    # The newest tick, not the next one: a slow reader skips those it missed, and nothing is queued for
                    # it.
                    yield self._tick
        finally:
            self.watching -= 1

    def snapshot(self) -> dict[str, Any]:
        """All that is known now."""
        about = {
            "models": [_model(model) for model in self.front.models],
            "version": panglot.__version__,
            "dev": self.front.settings.dev,
            "may_reload": not self.front.access.is_controllable,
        }
        recent = [_request(entry) for entry in self.front.recent]
        return {**self._figures(), "about": about, "history": self.history, "recent": recent}

    def request(self, request_id: str) -> dict[str, Any] | None:
        """What is known about one of the recent requests; None for any other."""
        entries = [entry for entry in self.front.recent if entry[1].decode("latin-1") == request_id]
        if not entries:
            return None
        entry = entries[-1]
        lines = self.log.about(request_id, entry[0] - entry[4] / 1e6, entry[0])
        troubles = [
            trouble
            for model in self.front.models
            for trouble in model.engine.troubles
            if trouble.request_id == request_id
        ]
        more = {"message": seen(troubles[-1].message)} if troubles else {}
        if troubles and self.front.settings.dev:
            more["traceback"] = seen(troubles[-1].traceback)
        return {**_request(entry), "log": [line._asdict() for line in lines], **more}

    # Sampling

    def sample(self, now: float) -> dict[str, Any]:
        """Take in what has happened since the last sample; what a tick tells."""
        current = counted([model.metrics for model in self.front.models], self._routes(), now)
        rates, latency, batch = between(self._before, current)
        self._before = current
        self._note_failures()
        pids = [os.getpid(), *(worker["pid"] for _, worker in self._workers() if worker["pid"])]
        self._costs = self._processes.look(pids, now)
        gauges = _gauges(self.front)
        good, refused, failed = (round(rate, 2) for rate in rates)
        p50, p95, p99 = (round(ms, 3) for ms in latency)
        waiting, in_progress = gauges["panglot_queue_length"], gauges["panglot_requests_in_progress"]
        cpu = round(sum(cost[0] for cost in self._costs.values()), 3)
        memory = sum(cost[1] for cost in self._costs.values())
        self.history.append(
            Sample(
                round(now, 1), good, refused, failed, p50, p95, p99, int(waiting), int(in_progress), round(batch, 2),
                cpu, memory,
            )
        )  # fmt: skip
        fresh = self._fresh()
        return {**self._figures(), "sample": self.history[-1], "recent": fresh} if self.watching else {}

    def _routes(self) -> frozenset[str]:
        """The names of all routes that lead to scripts."""
        models = list(self.front.models)
        named = {route.name for model in models for route in model.contract.routes}
        return frozenset(named.union(*(model.metrics.latency for model in models)))

    def _note_failures(self) -> None:
        models, routes = list(self.front.models), self._routes() | {"other"}
        for model in models:
            whose = f"{model.name}: " if len(models) > 1 else ""
            self.failures.update(whose, model.metrics, model.engine.troubles, routes)
        if all(model.metrics is not self.front.metrics for model in models):
            self.failures.update("", self.front.metrics, (), routes)

    def _workers(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Every worker, with the name of its model."""
        for model in self.front.models:
            for worker in model.engine.workers():
                yield model.name, worker

    @property
    def state(self) -> str:
        """That of the model that is worst off; where all answer and some sleep, `ready`, and `asleep` where all do."""
        of_models = [model.engine.state for model in self.front.models]
        worst = next((state for state in of_models if state not in states.SERVING), "")
        return worst or (of_models[0] if len(set(of_models)) == 1 else states.READY)

    def _fresh(self) -> list[dict[str, Any]]:
        """The requests that were answered since the last tick, oldest first."""
        fresh: list[dict[str, Any]] = []
        for entry in reversed(self.front.recent):
            # Compared by identity: two requests may have equal entries.
            if entry is self._last:
                break
            fresh.append(_request(entry))
        self._last = self.front.recent[-1] if self.front.recent else None
        return fresh[::-1]

    def _figures(self) -> dict[str, Any]:
        """What holds at this moment."""
        front, answers = self.front, self._before.answers
        gauges = _gauges(front)
        model = front.models.default
        extra = model.contract.live if model is not None else None
        return {
            "state": self.state,
            "now": round(time.time(), 1),
            "uptime": round(time.monotonic() - front.began, 1),
            "answered": sum(answers.values()),
            "refused": answers.get(4, 0),
            "failed": answers.get(5, 0),
            "waiting": int(gauges["panglot_queue_length"]),
            "in_progress": int(gauges["panglot_requests_in_progress"]),
            "held": front.quota.used,
            "watching": self.watching,
            "front": self._cost(os.getpid()),
            "workers": [self._worker(name, worker) for name, worker in self._workers()],
            "pools": [{"model": seen(model.name), **size} for model in front.models for size in model.engine.sizes()],
            "asleep": [seen(model.name) for model in front.models if model.engine.state == states.ASLEEP],
            "batches": self._batches(),
            "restarts": dict(sum((Counter(model.metrics.restarts) for model in front.models), Counter())),
            "deaths": [self._death(death) for death in reversed(self.failures.deaths)],
            "errors": self.failures.shown(),
            **({"keys": front.access.keys.shown()} if front.access.keys is not None else {}),
            **({"extra": extra(model)} if extra is not None else {}),
        }

    def _death(self, death: Trouble) -> dict[str, Any]:
        more = {"more": seen(death.traceback)} if self.front.settings.dev and death.traceback else {}
        return {"when": death.when, "what": seen(death.message), **more}

    def _cost(self, pid: int) -> dict[str, Any]:
        cpu, memory = self._costs.get(pid, (0.0, 0))
        return {"pid": pid, "cpu": round(cpu, 3), "memory": memory}

    def _worker(self, model: str, worker: dict[str, Any]) -> dict[str, Any]:
        """A worker with what it costs; what it reports is for other pages."""
        known = {name: value for name, value in worker.items() if name != "report"}
        known |= {"step": seen(worker["step"]), "model": seen(model)}
        gpu = {"gpu": self._gpus.memory[worker["pid"]]} if worker["pid"] in self._gpus.memory else {}
        return {**known, "seconds": round(worker["seconds"], 1), **self._cost(worker["pid"]), **gpu}

    def _batches(self) -> list[tuple[int, int]]:
        """How many batches had at most so many items, and more than half as many."""
        sizes: dict[int, int] = {}
        pools = [pool for model in self.front.models for pool in model.metrics.pools.values()]
        for place, count in ((place, count) for pool in pools for place, count in enumerate(pool.batch_size.counts)):
            if count:
                sizes[2**place] = sizes.get(2**place, 0) + count
        return sorted(sizes.items())


def _model(model: Model) -> dict[str, str]:
    dialect = model.package.dialect
    return {"name": seen(model.name), "version": seen(model.version), "dialect": dialect, "state": model.engine.state}


def _gauges(front: Front) -> dict[str, float]:
    """The engines' figures by name, those of several models and pools added up."""
    gauges: dict[str, float] = {"panglot_queue_length": 0, "panglot_requests_in_progress": 0}
    for name, _, _, value in front.gauges():
        gauges[name] = gauges.get(name, 0) + value
    return gauges


def _request(entry: Recent) -> dict[str, Any]:
    """A recent request, its times in milliseconds."""
    when, identity, route, status, total, queued, times = entry
    stages = {name: us / 1000 for name, us in zip(STAGES, (queued, *times), strict=True) if us}
    row = {"when": when, "id": identity.decode("latin-1"), "route": route, "status": status}
    return {**row, "total": total / 1000, "stages": stages}


def seen(text: str) -> str:
    """Text in which everything shows: what hides, or turns other text around, is spelt out."""
    return visible(text, "\n\t")


def _event(name: str, value: dict[str, Any]) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), orjson.dumps(value, default=plain))


def plain(value: Any) -> Any:
    """What JSON has no word for: samples and a deque of them as lists, anything else as text."""
    return list(value) if isinstance(value, deque | tuple) else str(value)
