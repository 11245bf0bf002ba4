"""The figures of the status page: a sample each second, ten minutes of them, sent to every page that is open.

They are of all models together and, where there are several, of each. They are collected and written as JSON once a
second, however many pages are open.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import orjson

import panglot
from panglot.engine import interface as states
from panglot.engine.interface import Trouble
from panglot.machine.gpu_memory import Gpus
from panglot.terminal.text import visible
from panglot.web.models import Model
from panglot.web.pages.failures import Failures, Owner
from panglot.web.pages.front_load import FrontLoad
from panglot.web.pages.log_tail import LogTail
from panglot.web.pages.sampling import Counted, Processes, Sample, between, counted

if TYPE_CHECKING:
    from panglot.web.front import Front, Recent

log = logging.getLogger("panglot.web")
EVERY = 1.0
MINUTES = 10
ALL = ""
"""Stands for all models where figures are of one of them."""
STAGES = ("queue", "decode", "preprocess", "inference", "postprocess", "encode")


class Live:
    """Samples one front. `run` is a task for as long as the server runs."""

    def __init__(self, front: Front) -> None:
        self.front = front
        self.histories: dict[str, deque[Sample]] = {}
        """By the name of a model."""
        self.log = LogTail()
        self._watching: Counter[str] = Counter()
        """How many pages are open, by the name of the model that they show."""
        self.failures = Failures()
        self.load = FrontLoad()
        self._advice, self._has_advised = "", False
        self._before: dict[str, Counted] = {}
        self._processes = Processes()
        self._costs: dict[int, tuple[float, int]] = {}
        self._gpus = Gpus()
        self._last: Recent | None = None
        self._latest: list[Recent] = []
        """The requests that were answered in the last second."""
        self._ticks: dict[str, bytes] = {}
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
                self.sample(time.time())
                self._latest = self._fresh()
                if self.watching:
                    self._gpus.look(time.monotonic())
                    await self._tell()
        finally:
            logger.removeHandler(self.log)
            self.end()

    def end(self) -> None:
        """End the events of all open pages, so that the server can stop."""
        self._ended = True
        self._next.set()

    @property
    def watching(self) -> int:
        """How many pages are open."""
        return self._watching.total()

    async def _tell(self) -> None:
        """Send the changes to all open pages."""
        self._ticks |= {name: _event("tick", await self._of_all(name, is_tick=True)) for name in list(+self._watching)}
        # All pages that wait now have this event. A page that comes back later waits for the new one.
        self._next.set()
        self._next = asyncio.Event()

    # Looking

    def tick(self, name: str = ALL) -> dict[str, Any]:
        """What has changed in the last second."""
        samples = list(self._history(name))[-1:]
        recent = _requests(name, self._latest)
        return {**self._figures(name), "sample": samples[0] if samples else None, "recent": recent}

    async def _of_all(self, name: str, *, is_tick: bool) -> dict[str, Any]:
        """What this process knows, with what the other fronts know where there are some."""
        known, others = self.tick(name) if is_tick else self.snapshot(name), self.front.others
        if others is not None:
            known = await others.status(known, self.front.listener, is_tick, name)
        # Last: the figures of this process are about the workers of all fronts.
        for worker in known["workers"]:
            if worker["pid"] in self._gpus.memory:
                worker["gpu"] = self._gpus.memory[worker["pid"]]
        return known

    async def look(self, name: str = ALL) -> dict[str, Any]:
        """All that is known now of a model, or of all, for a client that asks once."""
        await self._gpus.renewed(time.monotonic())
        return await self._of_all(name, is_tick=False)

    async def events(self, name: str = ALL) -> AsyncIterator[bytes]:
        """Server-sent events: all that is known, then the changes. A slow reader misses ticks, not figures."""
        self._watching[name] += 1
        try:
            yield _event("snapshot", await self._of_all(name, is_tick=False))
            while not self._ended:
                await self._next.wait()
                if not self._ended and name in self._ticks:
                    # The newest tick, not the next one: a slow reader skips the ticks that it missed, and none is
                    # queued for it.
                    yield self._ticks[name]
        finally:
            self._watching[name] -= 1

    def snapshot(self, name: str = ALL) -> dict[str, Any]:
        """All that is known now."""
        about = {
            "model": seen(name),
            "models": [_model(model) for model in self.front.models],
            "version": panglot.__version__,
            "dev": any(model.settings.dev for model in self._models(name)),
            "may_reload": not self.front.access.is_controllable,
        }
        recent = _requests(name, self.front.recent)
        return {**self._figures(name), "about": about, "history": self._history(name), "recent": recent}

    def _history(self, name: str) -> deque[Sample]:
        """The samples of a model. That of the only model is the same as that of all."""
        return self.histories[name if name in self.histories else ALL] if self.histories else deque()

    def request(self, request_id: str) -> dict[str, Any] | None:
        """One of the recent requests that this front answered; None for any other."""
        entries = [entry for entry in self.front.recent if entry[1].decode("latin-1") == request_id]
        return _request(entries[-1]) if entries else None

    def said(self, request_id: str, began: float, ended: float) -> dict[str, Any]:
        """What was logged of a request, and its error where a worker of this front had it."""
        lines = self.log.about(request_id, began, ended)
        troubles = [
            (trouble, model.settings.dev)
            for model in self.front.models
            for trouble in model.engine.troubles
            if trouble.request_id == request_id
        ]
        more = {}
        for trouble, dev in troubles[-1:]:
            more = {"message": seen(trouble.message), **({"traceback": seen(trouble.traceback)} if dev else {})}
        return {"log": [line._asdict() for line in lines], **more}

    async def look_for(self, request_id: str) -> dict[str, Any] | None:
        """One of the recent requests of any front, with its log lines and error. None where no front had it."""
        row, others = self.request(request_id), self.front.others
        if row is None and others is not None:
            row = await others.request(request_id, self.front.listener)
        if row is None:
            return None
        began, ended = row["when"] - row["total"] / 1000, row["when"]
        said = self.said(request_id, began, ended)
        if others is not None:
            # Of all of them: the front that has the client may have lent the call.
            said = await others.said(said, request_id, began, ended, self.front.listener)
        return {**row, **said}

    # Sampling

    def sample(self, now: float) -> None:
        """Take in what has happened since the last sample."""
        self._note_failures()
        pids = [os.getpid(), *(worker["pid"] for _, worker in self._workers() if worker["pid"])]
        self._costs = self._processes.look(pids, now)
        self._look_at_load()
        names = self.front.models.names
        scopes = (ALL, *names) if len(names) > 1 else (ALL,)
        self.histories = {name: self.histories.get(name, _no_samples()) for name in scopes}
        self._before = {name: self._sampled(name, now) for name in scopes}

    def _sampled(self, name: str, now: float) -> Counted:
        """Add a sample to the history of a model, or of all; what had been counted up to now."""
        current = counted([model.metrics for model in self._models(name)], self._routes(), now)
        rates, latency, batch = between(self._before.get(name) or Counted(now - EVERY), current)
        gauges = self._gauges(name)
        good, refused, failed = (round(rate, 2) for rate in rates)
        p50, p95, p99 = (round(ms, 3) for ms in latency)
        waiting, in_progress = gauges["panglot_queue_length"], gauges["panglot_requests_in_progress"]
        own = {worker["pid"] for _, worker in self._workers(name)} | ({os.getpid()} if name == ALL else set())
        costs = [cost for pid, cost in self._costs.items() if pid in own]
        cpu, memory = round(sum(cost[0] for cost in costs), 3), sum(cost[1] for cost in costs)
        self.histories[name].append(
            Sample(
                round(now, 1), good, refused, failed, p50, p95, p99, int(waiting), int(in_progress), round(batch, 2),
                cpu, memory,
            )
        )  # fmt: skip
        return current

    def _look_at_load(self) -> None:
        """Note how busy this process is. The log says once that it limits the server."""
        # Several listeners are in one process: the first looks for all of them.
        if self.front.listener:
            return
        self.load.look(self._costs, (worker for _, worker in self._workers()))
        self._advice = self.load.advice()
        if self._advice and not self._has_advised:
            self._has_advised = True
            log.warning("%s", self._advice)

    def _models(self, name: str) -> list[Model]:
        """All versions of a model; or all models."""
        return [model for model in self.front.models if name in (ALL, model.name)]

    def _routes(self) -> frozenset[str]:
        """The names of all routes that lead to scripts."""
        models = list(self.front.models)
        named = {route.name for model in models for route in model.contract.routes}
        return frozenset(named.union(*(model.metrics.latency for model in models)))

    def _note_failures(self) -> None:
        models, routes = list(self.front.models), self._routes() | {"other"}
        answered = {entry[1].decode("latin-1"): (entry[2], entry[3]) for entry in self.front.recent}
        for model in models:
            version = model.version if len(self.front.models.versions(model.name)) > 1 else ""
            owner = Owner(model.name, version, model.settings.dev)
            self.failures.update(owner, model.metrics, model.engine.troubles, routes, answered)
        if all(model.metrics is not self.front.metrics for model in models):
            self.failures.update(Owner(), self.front.metrics, (), routes, answered)

    def _workers(self, name: str = ALL) -> Iterator[tuple[str, dict[str, Any]]]:
        """Every worker of a model, or of all, with the name of its model."""
        for model in self._models(name):
            for worker in model.engine.workers():
                yield model.name, worker

    def state(self, name: str = ALL) -> str:
        """The state of the first model that does not answer. Where all answer: `asleep` if all sleep, else `ready`."""
        of_models = [model.engine.state for model in self._models(name)]
        worst = next((state for state in of_models if state not in states.SERVING), "")
        return worst or (of_models[0] if len(set(of_models)) == 1 else states.READY)

    def _fresh(self) -> list[Recent]:
        """The requests that were answered since the last time, oldest first."""
        fresh: list[Recent] = []
        for entry in reversed(self.front.recent):
            # Compared by identity: two requests may have equal entries.
            if entry is self._last:
                break
            fresh.append(entry)
        self._last = self.front.recent[-1] if self.front.recent else None
        return fresh[::-1]

    def _figures(self, name: str) -> dict[str, Any]:
        """The figures of this moment."""
        front, models, gauges = self.front, self._models(name), self._gauges(name)
        answers = self._before[name if name in self._before else ALL].answers if self._before else {}
        model = front.models.default
        extra = model.contract.live if model is not None else None
        return {
            "state": self.state(name),
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
            "advice": self._advice,
            "workers": [self._worker(owner, worker) for owner, worker in self._workers(name)],
            "pools": [{"model": seen(model.name), **size} for model in models for size in model.engine.sizes()],
            "asleep": [seen(model.name) for model in models if model.engine.state == states.ASLEEP],
            "batches": _batches(models),
            "restarts": dict(sum((Counter(model.metrics.restarts) for model in models), Counter())),
            "deaths": [
                self._death(*death) for death in reversed(self.failures.deaths) if name in (ALL, death[0].model)
            ],
            "errors": self.failures.shown(name),
            **({"keys": front.access.keys.shown()} if front.access.keys is not None else {}),
            **({"extra": extra(model)} if extra is not None else {}),
        }

    def _death(self, owner: Owner, death: Trouble) -> dict[str, Any]:
        more = {"more": seen(death.traceback)} if owner.dev and death.traceback else {}
        return {"when": death.when, "model": seen(owner.model), "what": seen(death.message), **more}

    def _cost(self, pid: int) -> dict[str, Any]:
        cpu, memory = self._costs.get(pid, (0.0, 0))
        return {"pid": pid, "cpu": round(cpu, 3), "memory": memory}

    def _worker(self, model: str, worker: dict[str, Any]) -> dict[str, Any]:
        """A worker with its CPU and memory; its own report is for other pages."""
        known = {name: value for name, value in worker.items() if name != "report"}
        known |= {"step": seen(worker["step"]), "model": seen(model)}
        return {**known, "seconds": round(worker["seconds"], 1), **self._cost(worker["pid"])}

    def _gauges(self, name: str) -> dict[str, float]:
        """The figures of engines by name, those of several models and pools added up."""
        gauges: dict[str, float] = {"panglot_queue_length": 0, "panglot_requests_in_progress": 0}
        for model in self._models(name):
            for gauge, _, _, value in model.engine.gauges():
                gauges[gauge] = gauges.get(gauge, 0) + value
        return gauges


def _no_samples() -> deque[Sample]:
    return deque(maxlen=int(MINUTES * 60 / EVERY))


def _batches(models: Iterable[Model]) -> list[tuple[int, int]]:
    """How many batches had at most so many items, and more than half as many."""
    sizes: dict[int, int] = {}
    pools = [pool for model in models for pool in model.metrics.pools.values()]
    for power, count in ((power, count) for pool in pools for power, count in enumerate(pool.batch_size.counts)):
        if count:
            sizes[2**power] = sizes.get(2**power, 0) + count
    return sorted(sizes.items())


def _model(model: Model) -> dict[str, str]:
    dialect = model.package.dialect
    return {"name": seen(model.name), "version": seen(model.version), "dialect": dialect, "state": model.engine.state}


def _requests(name: str, entries: Iterable[Recent]) -> list[dict[str, Any]]:
    """Those recent requests that a model answered; or all of them."""
    return [_request(entry) for entry in entries if name in (ALL, entry[7])]


def _request(entry: Recent) -> dict[str, Any]:
    """A recent request, its times in milliseconds."""
    when, identity, route, status, total, queued, times, model = entry
    stages = {name: us / 1000 for name, us in zip(STAGES, (queued, *times), strict=True) if us}
    row = {"when": when, "id": identity.decode("latin-1"), "model": seen(model), "route": route, "status": status}
    return {**row, "total": total / 1000, "stages": stages}


def seen(text: str) -> str:
    """Text in which everything shows: what hides, or turns other text around, is spelt out."""
    return visible(text, "\n\t")


def _event(name: str, value: dict[str, Any]) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), orjson.dumps(value, default=plain))


def plain(value: Any) -> Any:
    """Values that JSON has no form for: samples, and a deque of them, as lists; anything else as text."""
    return list(value) if isinstance(value, deque | tuple) else str(value)
