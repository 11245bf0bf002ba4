"""The workers of one pool: started, watched, replaced while they serve, restarted when they die."""

from __future__ import annotations

import asyncio
import itertools
import logging
from typing import TYPE_CHECKING, Any

from panglot.engine import launching
from panglot.engine.call import Call, Fault
from panglot.engine.context import EngineContext
from panglot.engine.memory.pool_memory import PoolMemory
from panglot.engine.pools import after_death, time_limits
from panglot.engine.processes.launcher import MachineLost
from panglot.engine.workers import obituary
from panglot.engine.workers.autoscaler import Autoscaler
from panglot.engine.workers.reloading import Reloads
from panglot.engine.workers.restarts import Pace, Restarts
from panglot.engine.workers.wear import Wear
from panglot.engine.workers.worker import DEAD, DIED, LOADING, LOST, READY, RETIRED, RETIRING, SICK, STARTING, Worker
from panglot.settings.counts import ANY, SINGLE, WorkerCount

if TYPE_CHECKING:
    from panglot.engine.engine import LocalEngine
    from panglot.engine.pools.pool import Pool

log = logging.getLogger("panglot.engine")
FRUITLESS = 5
"""Deaths in a row, without one answer between them, after which the script counts as failing."""
LONGEST_LOSS = 5.0
"""The longest pause before a placement is requested again, in seconds: machines come back without notice."""
RELOAD = "reload"
SURPLUS = "fewer are needed"


class Supervisor:
    """Keeps as many workers as are wanted. Everything here runs on the event loop's thread."""

    def __init__(self, pool: Pool, engine: LocalEngine, context: EngineContext, memory: PoolMemory) -> None:
        settings = context.settings
        self.pool = pool
        self.engine = engine
        self._context = context
        self.package = context.package
        self.settings = settings
        self.metrics = context.metrics
        self.clock = context.clock
        self.plan = pool.plan
        self.restarts = Restarts(settings.restart_delay, settings.restart_delay_max)
        self.broken_devices = Pace(settings.restart_delay, settings.restart_delay_max)
        self.lost_placements = Pace(settings.restart_delay, min(LONGEST_LOSS, settings.restart_delay_max))
        self.wear = Wear(settings)
        self.failed_loads = Restarts(settings.restart_delay, settings.restart_delay_max)
        self.sick_replacements = Pace(settings.restart_delay_max, 16 * settings.restart_delay_max)
        self.launcher = launching.launcher(context, pool.plan, memory)
        self.workers: list[Worker] = []
        self.count = self._count()
        """How many workers there may be; ANY: the script says it."""
        self.wanted = self.least = self.count.awake or 1
        """How many there are to be now, and how many when the model is loaded, or wakes."""
        self.autoscaler = Autoscaler(self, self.count, pool.title, context) if self.count.elastic else None
        self.first_ready = False
        self.stopping = False
        self.retry_at = 0.0
        self._generation = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._scaling: asyncio.Task[None] | None = None
        self.reloads = Reloads(self.workers, lambda worker: self.replace(worker, RELOAD))
        self._added: set[Worker] = set()
        """Workers that were started because there were too few, and are not ready yet."""

    # Starting workers

    def _count(self) -> WorkerCount:
        """How many workers the settings ask for."""
        if self.settings.inline:
            return SINGLE
        main = "inference" in self.plan.stages
        return self._context.share.of_range(self.plan.workers or (self.settings.workers if main else ANY))

    def start(self) -> None:
        """Start the first worker; the others follow when it is ready, since it says how many are wanted."""
        self.begin_scaling()
        self.wake()

    def begin_scaling(self) -> None:
        if self.autoscaler is not None:
            self._scaling = asyncio.get_running_loop().create_task(self.autoscaler.run())

    def _spawn(self, index: int, predecessor: Worker | None = None) -> Worker:
        # Never reused: by it frames, folders and agents tell a worker from its successor at the same index.
        self._generation += 1
        worker = self.launcher.record(self.pool, index, self._generation, self.clock)
        worker.predecessor = predecessor
        self.workers.append(worker)
        self._retain(asyncio.get_running_loop().create_task(self._start(worker)))
        return worker

    def _retain(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _start(self, worker: Worker) -> None:
        try:
            await self.launcher.launch(worker, self.engine.workers_wanted())
        except MachineLost as error:
            # The link was never connected, so nobody else reports this death.
            worker.state, worker.reason, worker.why = DEAD, LOST, str(error)
            self.on_death(worker)
        except OSError as error:
            worker.state = DEAD
            problem = f"a worker could not be started: {error}"
            worker.failure = {"problem": problem, "fix": getattr(error, "fix", "")}
            self.on_death(worker)

    def log_fields(self) -> dict[str, Any]:
        """The fields of a log line about the pool."""
        about = {"package": self.package.name}
        return {**about, "pool": self.plan.name} if self.plan.name else about

    def worker_log_fields(self, worker: Worker) -> dict[str, Any]:
        """The fields of a log line about a worker."""
        return {**self.log_fields(), "worker": worker.index}

    def on_ready(self, worker: Worker, ready: dict[str, Any]) -> None:
        """Note that a worker has loaded the script: the first says how many are wanted, a successor takes over."""
        seconds, python = ready["seconds"], worker.info.get("python", "?")
        message = "%s ready after %.1f s (%spid %d, Python %s)"
        where = f"node {worker.node}, " if worker.node else ""
        log.info(message, worker, seconds, where, worker.pid, python, extra=self.worker_log_fields(worker))
        most = self.plan.max_batch or self.settings.max_batch
        worker.max_batch = min(most, ready["max_batch"] or most)
        if not self.first_ready:
            self.first_ready = True
            share = self._context.share
            self.wanted = self.least = self.count.awake or share.of(ready["workers"] or 1)
            for index in itertools.islice(share.indices(), 1, self.wanted):
                self._spawn(index)
        self.retry_at = 0.0
        self.failed_loads.answered()
        self.wear.ready(worker)
        self._added.discard(worker)
        self.hand_over(worker.index)
        if worker.predecessor is not None:
            self.restarts.answered()
            self.wear.succeeded()
            self._succeed(worker.predecessor)
            worker.predecessor = None
        else:
            self.reloads.next()
        # Fewer may have become wanted while it loaded. The worker itself is present now, its predecessor is not.
        self._shed(len(self.present()) - self.wanted)

    def hand_over(self, index: int) -> None:
        """Tell the newest worker at an index that it owns the retained memory there, once no other worker does."""
        here = [worker for worker in self.workers if worker.index == index]
        heirs = [worker for worker in here if worker.state == READY]
        if self.package.retained_bytes and heirs and not any(worker.owns_retained for worker in here):
            heirs[-1].take_over()

    def release_retained(self, worker: Worker) -> None:
        """Note that a worker no longer uses the memory that its successor takes over."""
        worker.owns_retained = False
        self.hand_over(worker.index)

    # More workers, or fewer

    def waiting(self, now: float) -> tuple[int, float]:
        """How many calls wait for a worker of this pool, and for how many seconds the oldest has."""
        return self.pool.dispatcher.backlog(now)

    def present(self) -> list[Worker]:
        """The workers that are to stay: without successors that still load, and without retiring workers."""
        return [worker for worker in self.workers if worker.state != RETIRING and worker.predecessor is None]

    def resize(self, wanted: int) -> None:
        """Start workers, or retire the least busy ones, which answer their calls first."""
        more, self.wanted = wanted - self.wanted, wanted
        self._added.update(self._spawn_more(more))
        self._shed(-more)

    def _spawn_more(self, count: int) -> list[Worker]:
        """Start so many workers, at the lowest indexes that no worker has, or only a retiring one."""
        # Keys lead to the lowest indexes: a worker at a further index would get no call.
        used = {worker.index for worker in self.workers if worker.state != RETIRING}
        free = (index for index in self._context.share.indices() if index not in used)
        return [self._spawn(index) for index in list(itertools.islice(free, max(0, count)))]

    def sleep(self) -> None:
        """Retire all workers. None of them may have a call, or be loading."""
        self.resize(0)

    def wake(self) -> None:
        """Start the workers of a pool that has none. One that was never loaded gets its first, which says how many."""
        self.wanted = self.least
        # Not by `resize`: when a worker of `resize` fails to load, the pool has one fewer, and here it would have none.
        self._spawn_more(self.wanted if self.first_ready else 1)

    def resume(self, workers: int) -> None:
        """Be asleep from the start: an earlier process has loaded the script, and it wants so many workers."""
        self.first_ready, self.least, self.wanted = True, self.count.awake or workers, 0

    def _shed(self, count: int) -> None:
        """Retire the least busy workers. A worker that still loads is looked at again when it is ready."""
        if count <= 0:
            return
        replaced = {worker.predecessor for worker in self.workers}
        spare = [worker for worker in self.present() if worker.state == READY and worker not in replaced]
        spare.sort(key=lambda worker: (len(worker.in_flight), -worker.index))
        for worker in spare[:count]:
            worker.retire(SURPLUS)

    def scale(self, count: WorkerCount) -> None:
        """Have so many workers from now on, whatever the settings say."""
        if self._scaling is not None:
            self._scaling.cancel()
            self._scaling = None
        self.count = count
        self.autoscaler = Autoscaler(self, count, self.pool.title, self._context) if count.elastic else None
        self.least = count.awake
        # A pool that sleeps gets `least` workers when it wakes.
        if self.first_ready and not self.stopping and self.wanted:
            wanted = min(max(self.wanted, count.awake), count.most)
            message = "%d worker%s instead of %d: by request"
            log.info(message, wanted, "" if wanted == 1 else "s", self.wanted, extra=self.log_fields())
            self.resize(wanted)
        self.begin_scaling()

    # Replacing workers that still serve

    def reload(self) -> None:
        """Load the script anew, one worker at a time. The old ones serve on, and stay if the new one fails."""
        self.wear.reloaded()
        self.reloads.begin()

    def replace(self, worker: Worker, why: str) -> None:
        """Start a successor of a worker that serves until the successor is ready."""
        if self._is_succeeded(worker):
            return
        log.info("%s is being replaced: %s", worker, why, extra=self.worker_log_fields(worker))
        worker.why = why
        self._spawn(worker.index, worker)

    def _is_succeeded(self, worker: Worker) -> bool:
        return any(successor.predecessor is worker for successor in self.workers)

    def replace_sick(self, worker: Worker, why: str) -> None:
        """Replace a worker that fails on all calls in the same way. Seldom: the calls themselves may be the cause."""
        now = self.clock()
        if worker.state == READY and not self.sick_replacements.wait(now):
            self.sick_replacements.done(now)
            log.error("%s: %s", worker, why, extra=self.worker_log_fields(worker))
            self.engine.remember(f"{worker}: {why}", "")
            self.replace(worker, why)

    def _succeed(self, old: Worker) -> None:
        """Retire the worker that a successor, which is ready now, replaces. It answers its calls first."""
        # `reload` did this too, but the old script has served since, and may have killed workers.
        if old.why == RELOAD:
            self.engine.poison.forget()
        if old.state == READY:
            old.retire(old.why)
        self.reloads.next()

    def tick(self, now: float) -> None:
        """End what runs or loads for too long; replace workers that have grown or served enough."""
        self.pool.cancel_slow_streams(now)
        # A copy: `replace` adds workers.
        for worker in list(self.workers):
            if worker.stream_pause.call is not None:
                # The script is not to blame: it waits for a client.
                worker.busy_since = now
            for call in time_limits.late_jobs(worker, now):
                self.pool.give_up(call, after_death.OVERRAN)
            if worker.state in (STARTING, LOADING) and now - worker.since > self.settings.load_timeout:
                worker.kill_hung(
                    f"was killed: not loaded after {self.settings.load_timeout:g} s (it was {worker.step})"
                )
            elif (
                worker.in_flight
                and worker.state in (READY, RETIRING)
                and (limit := time_limits.overrun(worker, self.settings, now))
            ):
                worker.kill_hung(f"was killed: one call ran longer than {limit:g} s")
            elif worker.state == RETIRING and now - max(worker.since, worker.busy_since) > self.settings.kill_grace:
                # It has answered all its calls and does not end: something of the script keeps it.
                if not worker.in_flight:
                    worker.kill()
            elif worker.state == READY:
                worker.nudge()
                if not self._is_succeeded(worker) and (
                    why := self.wear.reason(worker, now, self.worker_log_fields(worker))
                ):
                    self.replace(worker, why)
                if now - worker.since > self.settings.restart_delay_max:
                    self.restarts.answered()

    # Deaths

    def on_death(self, worker: Worker) -> None:
        """Decide about the calls of a dead worker, and start another. Its process has been waited for."""
        if worker in self.workers:
            self.workers.remove(worker)
        # It has been waited for, or was on a node, which shares no memory with this machine: it can write no more.
        worker.leases.release_all()
        self.launcher.clean_up(worker)
        # A successor that is ready may have waited for the retained memory of this worker.
        self.hand_over(worker.index)
        lost = list(worker.in_flight.values())
        worker.in_flight.clear()
        if lost and worker.reason == RETIRED and worker.slots == 1:
            worker.reason = DIED  # It was to finish these first.
        if not self.first_ready and not self.stopping and (worker.reason != LOST or worker.failure is not None):
            self.engine.load_failed(obituary.load_error(worker, self.package))
            return
        self.pool.sort_out(worker, lost)
        if self.stopping:
            return
        if worker.predecessor is not None:
            self._failed_successor(worker)
            return
        if worker.why == SURPLUS:
            return
        self.metrics.restarts[worker.reason] += 1
        if not obituary.is_expected(worker):
            self._retain(asyncio.get_running_loop().create_task(self._report(worker, lost)))
        # The script ran in this process: there is no other to start again.
        if self.launcher.inline is not None:
            self.engine.load_failed(obituary.load_error(worker, self.package))
            return
        # The attempt to have one more has failed: the pool goes on as it was, and the autoscaler tries later.
        if worker in self._added and self.autoscaler is not None:
            self._added.remove(worker)
            self.wanted -= 1
            self.autoscaler.failed()
            return
        # Where a call may be to blame, the call bears the consequence, and the successor starts without delay.
        self._replace_dead(worker, culprit=bool(lost) or worker.accused)

    async def _report(self, worker: Worker, lost: list[Call]) -> None:
        line, more = await obituary.write(worker, lost, self.package)
        log.error("%s%s", line, f"; {more}" if more else "", extra=self.worker_log_fields(worker))
        self.engine.remember(line, more, lost)

    def _failed_successor(self, worker: Worker) -> None:
        error = obituary.load_error(worker, self.package)
        old = worker.predecessor
        self.reloads.give_up()
        self.metrics.restarts["failed_reload"] += 1
        about = {**self.worker_log_fields(worker), "traceback": error.traceback.rstrip()}
        later = ""
        if old is not None:
            old.served = 0
            if old.why != RELOAD:
                later = f"; the next is tried in {self.wear.failed(self.clock()):.2g} s or later"
        log.error("the new worker failed, the old one serves on%s: %s", later, error.sentence(), extra=about)

    def _replace_dead(self, worker: Worker, culprit: bool) -> None:
        """Start a successor of a dead worker, at once or later, unless there is one already."""
        if self._is_succeeded(worker) or len(self.present()) >= self.wanted:
            # A successor that still loads takes the place of the dead worker at once: `present` counts it from now on.
            for successor in self.workers:
                if successor.predecessor is worker:
                    successor.predecessor = None
            return
        delay = self._delay(worker, culprit)
        if delay:
            if worker.reason != LOST:
                # Calls may be refused until then. LOST is no fault of the script: calls wait for a machine instead.
                self.retry_at = max(self.retry_at, self.clock() + delay)
            log.warning("%s is started again in %.2g s", worker, delay, extra=self.worker_log_fields(worker))
            asyncio.get_running_loop().call_later(delay, self._respawn, worker.index)
        else:
            self._respawn(worker.index)

    def _delay(self, worker: Worker, culprit: bool) -> float:
        """How long to wait before a dead worker's successor starts."""
        if worker.reason == SICK or (worker.reason == LOST and not worker.loaded):
            pace = self.broken_devices if worker.reason == SICK else self.lost_placements
            now = self.clock()
            wait = pace.wait(now)
            pace.done(now)
            return wait
        if culprit or worker.reason in (RETIRED, LOST):
            return 0.0
        # Answers of other workers say nothing about one that does not even load.
        return max(self.restarts.delay(), 0.0 if worker.loaded else self.failed_loads.delay())

    def _respawn(self, index: int) -> None:
        # During the delay the server may have begun to stop, or the pool may have shrunk.
        if not self.stopping and len(self.present()) < self.wanted:
            if any(worker.index == index for worker in self.workers):
                # Scaled meanwhile: a further worker has got this index.
                self._spawn_more(1)
            else:
                self._spawn(index)

    # State

    @property
    def is_ready(self) -> bool:
        return any(worker.state == READY for worker in self.workers)

    @property
    def backing_off(self) -> bool:
        """Whether nothing can run, and nothing is being started yet."""
        return not self.workers and self.retry_at > self.clock()

    @property
    def outage(self) -> str:
        """Why no worker can be had, where the script is not at fault; empty where one is ready or can be launched."""
        return "" if self.is_ready else self.launcher.outage

    def hindrance(self) -> Fault | None:
        """The fault of a call when nothing can run now; None when something can, or a worker is being started."""
        if self.backing_off:
            return after_death.back_off(self.retry_at - self.clock())
        return after_death.no_placement(self.outage) if self.outage else None

    @property
    def failing(self) -> bool:
        """Whether workers keep dying while they load or idle, without one answer between their deaths."""
        return self.restarts.fruitless >= FRUITLESS

    async def stop(self, seconds: float) -> None:
        """End all workers; those that do not end in time are killed."""
        # First: from here on no death starts a successor.
        self.stopping = True
        if self._scaling is not None:
            self._scaling.cancel()
        for worker in list(self.workers):
            if worker.state == READY and not worker.in_flight:
                worker.retire("")
            else:
                worker.kill()
        deadline = self.clock() + seconds
        while self.workers and self.clock() < deadline:
            await asyncio.sleep(0.01)
        for worker in list(self.workers):
            worker.kill()
        # A killed process still has to be waited for: `on_death` takes each worker from the list.
        while self.workers and self.clock() < deadline + 2:
            await asyncio.sleep(0.01)
        self.launcher.close()
