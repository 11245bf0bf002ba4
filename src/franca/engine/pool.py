"""The workers of one stage of one package: their queue, their batches, their deaths."""

from __future__ import annotations

import asyncio
import itertools
import logging
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from franca.discovery import Package
from franca.engine import fates, obituary, process
from franca.engine.call import DONE, RUNNING, Call, Fault
from franca.engine.events import heed
from franca.engine.launcher import Launcher
from franca.engine.queue import Policy, Queue
from franca.engine.restarts import Restarts
from franca.engine.worker import DEAD, HUNG, LOADING, READY, RETIRED, RETIRING, STARTING, Worker
from franca.errors import LoadError
from franca.metrics import Metrics
from franca.settings import Settings
from franca_worker import wire

log = logging.getLogger("franca.engine")
FRUITLESS = 5
RECALL_AFTER = 0.1
STUCK = 0.005
"""Seconds after which the item at the head of a worker is no longer one of those of about a millisecond."""


@dataclass(frozen=True)
class Hooks:
    """What a pool tells its engine."""

    ready: Callable[[dict[str, Any]], None]
    failed: Callable[[LoadError], None]
    finished: Callable[[Call], None]
    trouble: Callable[[str, str, str], None]
    """A script error: request id, one line, traceback."""
    remember: Callable[[str, str], None]
    """Something for the page: one line, and more."""


class Pool:
    """Owns the queue and the workers. Everything here runs on the event loop's thread."""

    def __init__(
        self, package: Package, settings: Settings, metrics: Metrics, clock: Callable[[], float], hooks: Hooks
    ) -> None:
        self.package = package
        self.settings = settings
        self.metrics = metrics
        self.clock = clock
        self.hooks = hooks
        self.queue = Queue(settings.queue, settings.queue_bytes)
        self.restarts = Restarts(settings.restart_delay, settings.restart_delay_max)
        self.launcher = Launcher(package, settings, metrics, clock)
        self.workers: list[Worker] = []
        self.wanted = settings.workers or 1
        self.first_ready = False
        self.stopping = False
        self.retry_at = 0.0
        self.ids = itertools.count(1)
        self._generation = 0
        self._pump_scheduled = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._to_reload: list[Worker] = []

    # Starting workers

    def start(self) -> None:
        """Start the first worker; the others follow when it is ready, since it says how many are wanted."""
        self._spawn(0)

    def _spawn(self, index: int, predecessor: Worker | None = None) -> None:
        self._generation += 1
        worker = Worker(self, index, self._generation, self.clock)
        worker.predecessor = predecessor
        self.workers.append(worker)
        self._keep(asyncio.get_running_loop().create_task(self._start(worker)))

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _start(self, worker: Worker) -> None:
        try:
            await self.launcher.launch(worker, self.wanted)
        except OSError as error:
            worker.state = DEAD
            worker.failure = {"problem": f"a worker could not be started: {error}"}
            self.on_death(worker)

    def _about(self, worker: Worker) -> dict[str, Any]:
        return {"package": self.package.name, "worker": worker.index}

    def on_ready(self, worker: Worker, ready: dict[str, Any]) -> None:
        seconds, python = ready["seconds"], worker.info.get("python", "?")
        message = "worker %d ready after %.1f s (pid %d, Python %s)"
        log.info(message, worker.index, seconds, worker.pid, python, extra=self._about(worker))
        worker.max_batch = min(self.settings.max_batch, ready["max_batch"] or self.settings.max_batch)
        if not self.first_ready:
            self.first_ready = True
            self.wanted = self.settings.workers or ready["workers"] or 1
            for index in range(1, self.wanted):
                self._spawn(index)
        self.hooks.ready(ready)
        self.retry_at = 0.0
        if worker.predecessor is not None:
            self.restarts.answered()
            self._succeed(worker.predecessor)
            worker.predecessor = None
        self.schedule_pump()

    # Replacing workers that still serve

    def reload(self) -> None:
        """Load the script anew: one worker first; the old ones serve on, and are kept if the new one fails."""
        self._to_reload = [worker for worker in self.workers if worker.state == READY]
        self._reload_next()

    def _reload_next(self) -> None:
        while self._to_reload:
            worker = self._to_reload.pop(0)
            if worker.state == READY:
                self.replace(worker, "reload")
                return

    def replace(self, worker: Worker, why: str) -> None:
        """Start a successor; the worker serves until that is ready."""
        if any(other.predecessor is worker for other in self.workers):
            return
        log.info("worker %d is being replaced: %s", worker.index, why, extra=self._about(worker))
        worker.why = why
        self._spawn(worker.index, worker)

    def _succeed(self, old: Worker) -> None:
        """A successor is ready: the old worker finishes what it holds and ends."""
        if old.state == READY:
            old.stop(old.why)
        self._reload_next()

    # Sending work

    def accept(self, call: Call) -> bool:
        if not self.queue.offer(call):
            return False
        self.schedule_pump()
        return True

    def schedule_pump(self) -> None:
        """Send at the end of this turn of the loop, so that all requests of the turn may share a batch."""
        if not self._pump_scheduled:
            self._pump_scheduled = True
            asyncio.get_running_loop().call_soon(self._pump)

    def _pump(self) -> None:
        self._pump_scheduled = False
        if not self.queue.length:
            return
        now = self.clock()
        takers = [worker for worker in self.workers if self._room(worker, now) > 0]
        takers.sort(key=lambda worker: len(worker.in_flight))
        for position, worker in enumerate(takers):
            if not self.queue.length:
                return
            share = math.ceil(self.queue.length / (len(takers) - position))
            self._feed(worker, self._room(worker, now), share, now)

    def _room(self, worker: Worker, now: float) -> int:
        """How many more calls this worker may be given now."""
        if worker.state != READY or worker.paused or worker.reason == HUNG:
            return 0
        held = len(worker.in_flight)
        if held and next(iter(worker.in_flight.values())).alone:
            return 0
        if worker.slots > 1:
            return worker.slots - held
        if worker.batched:
            return 0 if held else worker.max_batch
        if held and now - worker.busy_since > STUCK:
            return 0
        return worker.window - held if held <= worker.window // 2 else 0

    def _feed(self, worker: Worker, most: int, share: int, now: float) -> None:
        wait = self.settings.max_wait_ms / 1000 if worker.batched else 0.0
        first = self.queue.oldest()
        if first is not None and first.alone and not worker.lives():
            return
        policy = Policy(most, self.settings.max_batch_bytes, wait)
        batch, reason, again = self.queue.take(policy, now, idle=not worker.in_flight, share=share)
        if not batch:
            if again:
                asyncio.get_running_loop().call_later(again - now, self.schedule_pump)
            return
        metrics = self.metrics
        metrics.released[reason] += 1
        metrics.batch_size.add(len(batch) if worker.batched else 1)
        worker.run(batch, now, singly=not worker.batched)
        for call in batch:
            metrics.queue_time.add(call.queued_us)

    # Hearing answers

    def on_replies(self, worker: Worker, replies: list[wire.Reply]) -> None:
        now = self.clock()
        in_flight, finished = worker.in_flight, self.hooks.finished
        worker.busy_since = now
        for reply in replies:
            if reply.flags & wire.MORE:
                self._part(worker, reply, now)
                continue
            call = in_flight.pop(reply.id, None)
            if call is None:
                if reply.id not in worker.recalled:
                    raise wire.WireError(f"an answer to item {reply.id}, which was never asked")
                worker.recalled.remove(reply.id)
                continue
            self._count(worker, reply)
            if call.state == RUNNING:
                call.state = DONE
                finished(call)
                call.reply(reply)
        self.restarts.fruitless = 0
        if self.queue.length:
            self.schedule_pump()

    def _part(self, worker: Worker, reply: wire.Reply, now: float) -> None:
        call = worker.in_flight.get(reply.id)
        if call is not None and call.state == RUNNING:
            call.parts += 1
            call.dispatched = now
            call.deadline = math.inf
            call.reply(reply)

    def _count(self, worker: Worker, reply: wire.Reply) -> None:
        decode, preprocess, inference, postprocess, encode = reply.times
        stages = self.metrics.stages
        stages[0].add(decode)
        stages[2].add(inference)
        stages[4].add(encode)
        if preprocess:
            stages[1].add(preprocess)
        if postprocess:
            stages[3].add(postprocess)
        if not worker.batched:
            worker.measured(decode + preprocess + inference + postprocess + encode)
        worker.served += 1

    def on_event(self, worker: Worker, event: dict[str, Any]) -> None:
        if event.get("type") == "failure":
            call = worker.in_flight.get(int(event.get("item", 0)))
            request_id = call.request_id.decode("latin-1") if call else ""
            self.hooks.trouble(request_id, str(event.get("message", "")), str(event.get("traceback", "")))
        else:
            heed(worker, event, self.metrics, self._about(worker))

    def on_metrics(self, deltas: dict[str, float]) -> None:
        for name, delta in deltas.items():
            self.metrics.script[name] += delta

    def on_fetch(self, worker: Worker, request: dict[str, Any]) -> None:
        call = worker.in_flight.pop(int(request["id"]), None)
        if call is not None and call.state == RUNNING:
            self._conclude(call, Fault(501, "no_fetch", "this server does not fetch addresses"))

    # Time

    def tick(self, now: float) -> None:
        """Kill what has run or loaded too long; replace what has grown or served enough."""
        longest = self.settings.effective_run_timeout + self.settings.kill_grace
        for worker in list(self.workers):
            if worker.link.held:
                worker.busy_since = now
            if worker.state in (STARTING, LOADING) and now - worker.since > self.settings.load_timeout:
                worker.kill(f"was killed: not loaded after {self.settings.load_timeout:g} s (it was {worker.step})")
            elif worker.in_flight and worker.state in (READY, RETIRING) and now - self._oldest(worker) > longest:
                worker.kill(f"was killed: one call ran longer than {self.settings.effective_run_timeout:g} s")
            elif worker.state == RETIRING and now - max(worker.since, worker.busy_since) > self.settings.kill_grace:
                if not worker.in_flight:
                    worker.destroy()
            elif worker.state == READY:
                self._relieve(worker, now)
                self._check_wear(worker)
                if now - worker.since > self.settings.restart_delay_max:
                    self.restarts.answered()

    def _relieve(self, worker: Worker, now: float) -> None:
        """Nobody waits behind a call that takes long while another worker is free."""
        one_by_one = worker.slots == 1 and not worker.batched and len(worker.in_flight) > 1
        if not one_by_one or now - worker.busy_since < RECALL_AFTER or not self.settings.rerun:
            return
        if any(self._room(other, now) > 0 for other in self.workers if other is not worker):
            calls = worker.recall()
            for call in calls:
                # A new name: what the worker still says about the old one is ignored.
                call.id = next(self.ids)
            self.queue.put_back(calls)
            self.schedule_pump()

    def _check_wear(self, worker: Worker) -> None:
        settings = self.settings
        if settings.worker_max_requests and worker.served >= settings.worker_max_requests:
            self.replace(worker, f"it has served {worker.served} requests")
        elif settings.worker_memory and (held := process.memory(worker.pid)) > settings.worker_memory:
            self.replace(worker, f"it holds {held // 1048576} MiB of memory")

    def _oldest(self, worker: Worker) -> float:
        if worker.slots > 1:
            return min(call.dispatched for call in worker.in_flight.values())
        return worker.busy_since

    # Leaving

    def forget(self, call: Call) -> None:
        """The caller has its answer, or has gone: drop the call wherever it is. Its state must be DONE already."""
        worker = self._holder(call)
        if worker is not None and (worker.slots > 1 or not worker.batched):
            worker.cancel(call)

    def _holder(self, call: Call) -> Worker | None:
        return next((worker for worker in self.workers if call.id in worker.in_flight), None)

    def hold(self, call: Call, held: bool) -> bool:
        """Stop or resume reading a stream's worker. False when that would stop other calls too."""
        worker = self._holder(call)
        if worker is None or worker.slots > 1:
            return False
        if held:
            worker.link.pause()
        else:
            worker.link.resume()
        return True

    def on_death(self, worker: Worker) -> None:
        if worker in self.workers:
            self.workers.remove(worker)
        self.launcher.clean_up(worker)
        lost = list(worker.in_flight.values())
        worker.in_flight.clear()
        if not self.first_ready and not self.stopping:
            self.hooks.failed(obituary.load_error(worker, self.package))
            return
        self._sort_out(worker, lost)
        if self.stopping:
            return
        if worker.predecessor is not None:
            self._failed_successor(worker)
            return
        self.metrics.restarts[worker.reason] += 1
        if worker.reason != RETIRED:
            self._keep(asyncio.get_running_loop().create_task(self._report(worker, lost)))
        if self.launcher.inline is not None:
            self.hooks.failed(obituary.load_error(worker, self.package))
            return
        self._replace_dead(worker)

    async def _report(self, worker: Worker, lost: list[Call]) -> None:
        line, more = await obituary.write(worker, lost)
        log.error("%s%s", line, f"; {more}" if more else "", extra=self._about(worker))
        self.hooks.remember(line, more)

    def _failed_successor(self, worker: Worker) -> None:
        error = obituary.load_error(worker, self.package)
        old = worker.predecessor
        self._to_reload.clear()
        self.metrics.restarts["failed_reload"] += 1
        log.error("the new worker failed, the old one serves on: %s\n%s", error.sentence(), error.traceback.rstrip(),
                  extra=self._about(worker))  # fmt: skip
        if old is not None:
            old.served = 0

    def _replace_dead(self, worker: Worker) -> None:
        if any(other.predecessor is worker for other in self.workers) or len(self.workers) >= self.wanted:
            for other in self.workers:
                if other.predecessor is worker:
                    other.predecessor = None
            return
        delay = 0.0 if worker.reason == RETIRED else self.restarts.delay()
        if delay:
            self.retry_at = max(self.retry_at, self.clock() + delay)
            log.warning("worker %d is started again in %g s", worker.index, delay, extra=self._about(worker))
            asyncio.get_running_loop().call_later(delay, self._respawn, worker.index)
        else:
            self._respawn(worker.index)

    def _respawn(self, index: int) -> None:
        if not self.stopping and len(self.workers) < self.wanted:
            self._spawn(index)

    def _sort_out(self, worker: Worker, lost: list[Call]) -> None:
        """Give each call a dead worker held its fate."""
        running = len(lost) if worker.batched or worker.slots > 1 else 1
        # One that retires has finished what it began, unless it runs several calls at once.
        spared = worker.reason == RETIRED and (worker.slots == 1 or self.settings.rerun)
        verdict = fates.judge(lost, 0 if spared else running, self.settings.rerun)
        self.metrics.reruns["worker_died"] += verdict.suspected
        for call in verdict.guilty:
            self._conclude(call, fates.OVERRAN if worker.reason == HUNG else fates.CRASHED)
        self.queue.put_back(verdict.again)
        if verdict.again:
            self.schedule_pump()

    def _conclude(self, call: Call, fault: Fault) -> None:
        call.state = DONE
        self.hooks.finished(call)
        call.fail(fault)

    # State

    @property
    def is_ready(self) -> bool:
        return any(worker.state == READY for worker in self.workers)

    @property
    def backing_off(self) -> bool:
        """Nothing can run, and nothing is being started."""
        return not self.workers and self.retry_at > self.clock()

    @property
    def failing(self) -> bool:
        """Workers keep dying without one answer between their deaths."""
        return self.restarts.fruitless >= FRUITLESS

    async def stop(self, seconds: float) -> None:
        """End all workers; those that do not end in time are killed."""
        self.stopping = True
        for worker in list(self.workers):
            if worker.state == READY and not worker.in_flight:
                worker.stop("")
            else:
                worker.destroy()
        deadline = self.clock() + seconds
        while self.workers and self.clock() < deadline:
            await asyncio.sleep(0.01)
        for worker in list(self.workers):
            worker.destroy()
        while self.workers and self.clock() < deadline + 2:
            await asyncio.sleep(0.01)
        self.launcher.close()
