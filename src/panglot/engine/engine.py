"""The engine that runs calls in worker processes. The web calls it by the interface in `interface.py`."""

from __future__ import annotations

import asyncio
import itertools
import logging
import math
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from panglot.engine import gauges, places
from panglot.engine.call import DONE, LONGEST_COPY, QUEUED, RUNNING, Call, Fault
from panglot.engine.context import EngineContext
from panglot.engine.deadlines import Deadlines
from panglot.engine.gauges import Gauge
from panglot.engine.interface import ASLEEP, BACK_OFF, DRAINING, LOADING, READY, WAKING
from panglot.engine.made_calls import MadeCalls
from panglot.engine.memory import buffers
from panglot.engine.memory.buffers import Arena, SharedBuffer
from panglot.engine.memory.pool_memory import PoolMemory
from panglot.engine.model_chains import Chain
from panglot.engine.pools import background, pipeline
from panglot.engine.pools.among_fronts import PoolAmongFronts
from panglot.engine.pools.poison import Poison
from panglot.engine.pools.pool import Pool
from panglot.engine.processes import family
from panglot.engine.ray.cluster import Cluster
from panglot.engine.sleep.engine_sleep import EngineSleep
from panglot.engine.sleep.last_life import LastLife
from panglot.engine.troubles import Troubles
from panglot.engine.workers.shares import WHOLE, FrontShare
from panglot.errors import LoadError, StartError
from panglot.metrics.counters import Metrics
from panglot.packages.package import Package
from panglot.settings import Settings
from panglot.settings.counts import WorkerCount

HANDED = 64
"""Results that may be between two pools of a pipeline in shared memory."""

log = logging.getLogger("panglot.engine")


class LocalEngine:
    """The engine of one model. Its workers are processes of this machine, or of a cluster's nodes."""

    pool_kind: type[Pool] = Pool
    pool_kind_among_fronts: type[PoolAmongFronts] = PoolAmongFronts
    takes_handed = True
    """Whether its workers may get the results of the model before it in a chain."""

    def __init__(
        self,
        package: Package,
        settings: Settings,
        metrics: Metrics,
        clock: Callable[[], float] = time.monotonic,
        cluster: Cluster | None = None,
        share: FrontShare = WHOLE,
        bodies: Arena | None = None,
    ) -> None:
        """`bodies` is memory for bodies that models share; without it the engine has its own."""
        self.context = EngineContext(package, settings, metrics, clock, cluster, share)
        self.troubles = Troubles(self.context)
        self.package = package
        self.settings = settings
        self.metrics = metrics
        self.clock = clock
        self.description: dict[str, Any] = {}
        self.ready = asyncio.Event()
        self.failed: LoadError | None = None
        self.draining = self.closed = False
        """Whether the engine takes no more calls, and only finishes the calls that it has."""
        self.live: set[Call] = set()
        self._ids = itertools.count(1)
        self.poison = Poison(settings.poison_deaths, settings.poison_time, clock)
        self.pools: list[Pool] = []
        self._former: list[Pool] = []
        """Pools that a pipeline has replaced; their workers are ending."""
        self.bodies = self._own_bodies = None
        if settings.share_from > 0:
            if bodies is None:
                self._own_bodies = buffers.create(settings.request_memory, settings.max_body, "for bodies")
            self.bodies = bodies or self._own_bodies
        self.chain = Chain(self, package.chain) if package.chain else None
        """The models that answer the calls instead of workers, where there are some."""
        self.made_calls = MadeCalls(package.name, clock, self.new_id, self.bodies)
        self._share_from = settings.share_from if self.bodies is not None else math.inf
        self.between: list[Arena] = []
        """The shared memory between the pools of a pipeline."""
        self._build(pipeline.divided({} if settings.inline else settings.pools))
        self._deadlines = Deadlines(self.live, clock, settings.queue_timeout, self._overdue)
        self.watch = self._deadlines.watch
        self._ticker: asyncio.Task[None] | None = None
        self._rate = 0.0
        self._done_at_tick = 0
        self.done = 0
        """Calls that have their answers."""
        self.sleeper: EngineSleep | None = None
        """The sleep of the model, where it may sleep. The maker of the engine sets it before the start."""
        self.home_is_ready: Callable[[], bool] = self.ready.is_set
        """Without workers: whether the front that has them is ready."""
        self.all_engines: list[LocalEngine] = [self]
        """All engines of this process. The first of them reaps orphans, and leaves the workers of all engines alone."""

    # The pipeline

    def _build(self, plans: Sequence[pipeline.PoolPlan]) -> None:
        size = self.settings.handoff_slot
        between = [
            buffers.create(HANDED * size, size, "for results between the pools") if size else None for _ in plans[1:]
        ]
        self.between = [created for created in between if created is not None]
        sides = [self.bodies, *between, None]
        self.metrics.pools.clear()
        make = self.pool_kind_among_fronts if self.context.share.fronts > 1 else self.pool_kind
        memories = itertools.starmap(PoolMemory, itertools.pairwise(sides))
        self.pools = [make(self, self.context, plan, memory) for plan, memory in zip(plans, memories, strict=True)]
        for before, after in itertools.pairwise(self.pools):
            before.dispatcher.next, after.dispatcher.previous = after.dispatcher, before.dispatcher
        self.entrance = self.pools[0].dispatcher
        """Takes the calls that are submitted."""
        self.main = next(pool for pool in self.pools if "inference" in pool.plan.stages)

    def divide(self, pools: list[dict[str, Any]]) -> bool:
        """Begin again with the pipeline that the script, once imported, asks for; False when it serves already."""
        if self.ready.is_set() or len(self.pools) > 1:
            return False
        requested = pipeline.requested(pools)
        log.info("%s asks for pools: %s", self.package.name, pipeline.listed(requested))
        probe = self.pools[0]
        # Before the new pools start: the end of this worker is no failure to load, and starts no successor.
        probe.supervisor.stopping = True
        # Its worker still has to be waited for: `started` names it, so that `bury_orphans` leaves it alone.
        self._former.append(probe)
        self._build(requested)
        self._retiring = asyncio.get_running_loop().create_task(probe.stop(2.0))
        for pool in self.pools:
            pool.supervisor.start()
        return True

    @property
    def is_divided_by_script(self) -> bool:
        return bool(self._former)

    # Life

    async def start(self) -> None:
        """Start the workers, and look after them from now on. Their scripts load meanwhile."""
        if not self.settings.inline:
            # Before the first worker: a process that loses its parent earlier than this is never adopted.
            family.adopt_orphans()
            # On a thread: `sweep` sleeps until the groups it kills are empty.
            self._sweeping = asyncio.get_running_loop().run_in_executor(None, family.sweep)
        for pool in self.pools if self.context.share.has_workers else ():
            if self.sleeper is None:
                pool.supervisor.start()
            else:
                pool.supervisor.begin_scaling()
        if self.sleeper is not None:
            self.sleeper.start_first()
        self._ticker = asyncio.get_running_loop().create_task(self._tick())

    async def _tick(self) -> None:
        settings = self.settings
        longest = (settings.effective_run_timeout, settings.load_timeout, settings.sleep_after, settings.wake_timeout)
        pause = max(0.05, min(1.0, *(seconds / 4 for seconds in longest if seconds)))
        while True:
            await asyncio.sleep(pause)
            self.poison.expire()
            if not self.settings.inline and self.all_engines[0] is self:
                family.bury_orphans({pid for engine in self.all_engines for pid in engine.started()})
            for pool in self.pools if self.context.share.has_workers else ():
                pool.supervisor.tick(self.clock())
            if self.sleeper is not None:
                self.sleeper.tick(self.clock())
            for shared in self._memory():
                shared.trim()
            self._rate += 0.3 * ((self.done - self._done_at_tick) / pause - self._rate)
            self._done_at_tick = self.done
            self._watch_load(pause)

    def _watch_load(self, seconds: float) -> None:
        """Learn how many requests are in the engine at a time, for the jobs beside them."""
        # A client that waits for its job is no request beside it: the job would make way for itself.
        total = sum(histogram.total for histogram in self.metrics.latency.values()) - self.metrics.waited_for_jobs
        present = sum(call.reserves for call in self.live)
        self.entrance.load.add(total / 1e6, present, seconds)

    def started(self) -> set[int]:
        """The processes that have an owner who waits for them: a record of a worker, or the cluster for its driver."""
        cluster = self.context.cluster
        own = {worker.child for pool in (*self.pools, *self._former) for worker in pool.workers}
        return own if cluster is None else own | {cluster.pid}

    def reload(self) -> None:
        """Load the script again while the old one serves on. Before the first ready there is nothing to replace."""
        if self._first_ready and not self.draining:
            self.poison.forget()
            for pool in self.pools:
                pool.supervisor.reload()

    async def stop(self, seconds: float = 2.0) -> None:
        """End the workers, which have some seconds to end by themselves, and give back the shared memory."""
        if self._ticker is not None:
            self._ticker.cancel()
        # Models that call others while they end get an answer: no worker would give one.
        self.closed = True
        self.made_calls.close()
        await asyncio.gather(*(pool.stop(seconds) for pool in self.pools))
        # After the workers have ended: until then a reply may name a buffer in this memory.
        for shared in self._memory():
            if shared is self._own_bodies or shared is not self.bodies:
                shared.close()
        self.between, self.bodies, self._own_bodies = [], None, None

    def _memory(self) -> list[Arena]:
        """All shared memory of this engine. Memory that all engines share counts as memory of the first engine."""
        answers = (worker.results for pool in self.pools if pool.plan.last for worker in pool.workers)
        return [shared for shared in (self._counted_bodies(), *self._handed(), *answers) if shared is not None]

    def _handed(self) -> list[Arena]:
        """The memory for results between pools, and for results that go to the next model of a chain."""
        given = self.main.memory.gives
        return self.between if given is None else [*self.between, given]

    def _counted_bodies(self) -> Arena | None:
        return self.bodies if self.all_engines[0] is self else self._own_bodies

    def job_capacity(self) -> int:
        if self.draining or not self.context.share.has_workers or self._closed() is not None:
            return 0
        return background.job_capacity(self.pools[0].workers)

    def buffer(self, size: int) -> SharedBuffer | None:
        return self.bodies.take(size) if self.bodies is not None else None

    def new_id(self) -> int:
        return next(self._ids)

    def workers_wanted(self) -> int:
        supervisors = (pool.supervisor for pool in self.pools)
        return self.context.share.all_of(sum(max(each.wanted, each.count.most) for each in supervisors))

    @property
    def _first_ready(self) -> bool:
        return all(pool.supervisor.first_ready for pool in self.pools)

    def pool_ready(self, pool: Pool, ready: dict[str, Any]) -> None:
        if pool is self.main:
            self.description = ready
        if self._first_ready:
            self.ready.set()
        if self.sleeper is not None:
            self.sleeper.loaded()

    def resume(self, life: LastLife) -> bool:
        """Begin asleep, as an earlier process left the model; False where it is divided in another way by now."""
        if self.sleeper is None or len(life.workers) != len(self.pools):
            return False
        self.description = life.ready
        for pool, workers in zip(self.pools, life.workers, strict=True):
            pool.supervisor.resume(workers)
        self.sleeper.resume(life)
        self.ready.set()
        return True

    def worker_ended(self, pool: Pool) -> None:
        if self.sleeper is not None:
            self.sleeper.worker_ended(pool)

    def load_failed(self, error: LoadError) -> None:
        """Store the error for the server, which stops with it."""
        self.failed = error
        # Wakes all code that waits for `ready`. It looks at `failed` next.
        self.ready.set()

    def found_poison(self, call: Call) -> None:
        """Log that calls like this one are refused from now on, and refuse the waiting calls of this kind."""
        line = f"{self.poison.about(call)} are refused for {self.poison.seconds:g} s"
        log.error("%s", line, extra={"package": self.package.name})
        self.remember(line, "")
        for pool in self.pools:
            pool.refuse_poison()

    def trouble(self, request_id: str, message: str, traceback: str, worker: int | None = None) -> None:
        self.troubles.log_failure(request_id, message, traceback, worker)

    def remember(self, message: str, more: str, held: Iterable[Call] = ()) -> None:
        self.troubles.note(message, more, held)

    # Calls

    def submit(self, call: Call) -> Fault | None:
        """Queue the call, or return why it is refused. From here on the engine owns its body, also if it is refused."""
        fault = self._closed()
        if fault is None and self.poison.lengths:
            fault = self._poisonous(call)
        if fault is None:
            if self.sleeper is not None:
                fault = self.sleeper.arrive(call)
            elif self.chain is not None and self.chain.begin(call):
                return None
        if fault is not None:
            call.release()
            return fault
        return self.submit_alone(call)

    def submit_alone(self, call: Call) -> Fault | None:
        """Queue a call for the engine's own workers."""
        call.id = next(self._ids)
        call.state = QUEUED
        if not self.entrance.accept(call):
            self.metrics.dropped["queue_full"] += 1
            call.release()
            return Fault(503, "queue_full", "too many requests are waiting; try again later", self._retry_after())
        # Only now: a deadline must not find a call that the queue has refused.
        self.live.add(call)
        # A call that is refused is not worth the copy. No worker gets the call before the end of this turn of the loop.
        if call.size >= self._share_from and call.buffer is None:
            self._copy_in(call)
        self.watch(call)
        if self.made_calls.held:
            # After the pump, which may find a free worker.
            asyncio.get_running_loop().call_soon(places.look_again, self)
        return None

    def _copy_in(self, call: Call) -> None:
        """Copy a body that came in pieces to shared memory, unless that would take so long that other calls wait."""
        buffer = self.buffer(call.size) if call.size <= LONGEST_COPY else None
        if buffer is not None:
            call.copy_in(buffer)

    def _closed(self) -> Fault | None:
        """Why no call can be taken now, if so."""
        if self.closed:
            return Fault(503, "draining", "the server is stopping", 1)
        for pool in self.pools:
            if not pool.supervisor.first_ready:
                return Fault(503, "loading", "the model is still loading; try again later", 2)
            # Asked first: nearly always there are some, and this is asked for every request.
            if not pool.workers and pool.supervisor.backing_off:
                self.metrics.dropped["back_off"] += 1
                return pool.supervisor.hindrance()
        return None

    def _poisonous(self, call: Call) -> Fault | None:
        fault = self.poison.refusal(call)
        if fault is not None:
            self.metrics.dropped[fault.code] += 1
        return fault

    def _retry_after(self) -> int:
        """How many seconds the queue takes at the present rate, between 1 and 30."""
        waiting = sum(len(pool.dispatcher.queue) for pool in self.pools)
        return max(1, min(30, math.ceil(waiting / self._rate))) if self._rate > 0.1 else 1

    def cancel(self, call: Call) -> None:
        """Cancel a call, in whatever pool it waits or runs. A call that is DONE stays as it is."""
        if call.state == QUEUED:
            self.metrics.dropped["disconnected"] += 1
            # Before `remove`: the queue tells by the state which calls still wait.
            call.state = DONE
            self.pools[call.pool_index].dispatcher.remove(call)
        elif call.state == RUNNING:
            # A call is RUNNING too while its addresses are fetched, and while it waits for a try on another worker.
            self.metrics.dropped["disconnected"] += call.ahead
            call.state = DONE
            self.pools[call.pool_index].cancel(call)
        self.live.discard(call)
        # Last: the queue counts the call out by its size, which is 0 after this.
        call.release()
        if self.made_calls.by_parent:
            self.made_calls.parent_ended(call.id)

    def pause_stream(self, call: Call, paused: bool) -> None:
        self.pools[call.pool_index].pause_stream(call, paused)

    def finished(self, call: Call) -> None:
        """Forget a call that has its answer."""
        call.release()
        self.done += 1
        self.live.discard(call)
        if self.made_calls.by_parent:
            self.made_calls.parent_ended(call.id)

    def _overdue(self, call: Call, now: float) -> None:
        queued, waited = call.state == QUEUED, call.state == QUEUED or call.ahead
        call.state = DONE
        self.metrics.dropped["deadline"] += waited
        if queued:
            self.pools[call.pool_index].dispatcher.remove(call)
        else:
            self.pools[call.pool_index].cancel(call)
        # Before `fail`, which runs code of the web: that code finds a call that is over and holds no memory.
        self.finished(call)
        hindrance = self._hindrance(call) if queued else None
        if hindrance is not None:
            call.fail(hindrance)
            return
        if call.deadline > now:
            problem = f"no worker was free within {self.settings.queue_timeout:g} s"
            call.fail(Fault(503, "queue_timeout", problem, self._retry_after()))
            return
        where = "while waiting for a worker" if waited else "while the script was running"
        call.fail(Fault(504, "timeout", f"not answered in time: the deadline passed {where}"))

    def _hindrance(self, call: Call) -> Fault | None:
        """Why a call was never begun, where neither this call nor other calls are the reason."""
        fault = self.pools[call.pool_index].supervisor.hindrance()
        if fault is None and self.sleeper is not None and self.sleeper.state == WAKING:
            return self.sleeper.fault()
        return fault

    # What is shown

    @property
    def state(self) -> str:
        """One of the states of `engine/interface.py`."""
        if self.draining:
            return DRAINING
        if any(pool.supervisor.failing or pool.supervisor.backing_off for pool in self.pools):
            return BACK_OFF
        if self.sleeper is not None and self.sleeper.state in (ASLEEP, WAKING):
            return self.sleeper.state
        own = all(pool.supervisor.is_ready for pool in self.pools)
        return READY if (own if self.context.share.has_workers else self.home_is_ready()) else LOADING

    def gauges(self) -> list[Gauge]:
        """Queues, requests in progress, workers by state, and shared memory in use; by pool where there are several."""
        return [
            *gauges.of_pools(self.pools, sum(not call.lent for call in self.live)),
            *gauges.of_memory(self._counted_bodies(), self._handed(), self._memory()),
            *(gauges.of_sleep(self.sleeper) if self.sleeper is not None else ()),
        ]

    def sizes(self) -> list[dict[str, Any]]:
        # A front whose model has its workers elsewhere has none to tell of.
        return gauges.sizes(self.pools) if self.context.share.has_workers else []

    def workers(self) -> list[dict[str, Any]]:
        """One entry for each worker, for the page and /status."""
        return gauges.workers(self.pools, self.clock())

    def scale(self, count: WorkerCount) -> None:
        if len(self.pools) > 1 or self.settings.inline:
            what = "runs in this process" if self.settings.inline else "is a pipeline of several pools"
            raise StartError(f"the number of workers cannot be chosen: the package {what}")
        if self.context.share.has_workers:
            self.main.supervisor.scale(self.context.share.of_range(count))
