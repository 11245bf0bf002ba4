"""When one model sleeps, and how a call wakes it."""

from __future__ import annotations

import logging
import math
import statistics
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from panglot.engine.call import Call, Fault
from panglot.engine.interface import ASLEEP, WAKING
from panglot.engine.sleep.damping import SleepDamping
from panglot.engine.sleep.last_life import LastLife
from panglot.engine.workers.worker import LOADING, STARTING

if TYPE_CHECKING:
    from panglot.engine.engine import LocalEngine
    from panglot.engine.pools.pool import Pool
    from panglot.engine.sleep.budget import MemoryBudget

NEW, AWAKE = "new", "awake"
"""The states besides ASLEEP and WAKING. NEW: it has not been loaded yet."""
IDLE, BUDGET = "idle", "budget"
"""Why a model goes to sleep: nobody uses it, or another one needs its memory."""
LOADS = 5
"""Loads that tell how long the next one takes."""
UNKNOWN_LOAD = 5.0
"""Seconds that a load is taken for where there was none yet."""
LONGEST_RETRY = 300
"""The largest Retry-After, in seconds."""
SHARE_OF_TIMEOUT = 4
"""After this part of a request's time an idle model yields its memory, so that those who wait are answered in time."""

log = logging.getLogger("panglot.engine")


class Sleeper:
    """Lets the workers of one engine go, and has them started again. All of it runs on the event loop's thread.

    NEW -> AWAKE: its first load has ended. AWAKE -> ASLEEP: nobody has used it for `sleep_after`, or another model
    needs its memory. ASLEEP -> WAKING: a call has come. WAKING -> AWAKE: every pool has a worker that is ready;
    or WAKING -> ASLEEP: its calls were cancelled before there was memory for it. A model with a call never sleeps.
    """

    def __init__(self, engine: LocalEngine, budget: MemoryBudget | None) -> None:
        self.engine = engine
        self.settings = engine.settings
        self.budget = budget
        self.state = NEW
        self.last_used = engine.clock()
        self.on_sleep: Callable[[], None] = lambda: None
        """Called when it falls asleep, for whoever stores what is remembered of it."""
        self._since = engine.clock()
        """When it took on its state."""
        self.granted = False
        """Whether the memory that it needs is its own, from before its workers start until it goes to sleep."""
        self._started = 0.0
        self._fell_asleep = engine.clock()
        self._waits_openly = False
        """Whether the log has said, since it was last awake, that others leave no memory for it."""
        self._damping = SleepDamping()
        self._loads: deque[float] = deque(maxlen=LOADS)
        self._done = 0
        self._seen: int | None = None
        self._seen_gpu: int | None = None
        """The most memory, and GPU memory, that it was seen to use; None: nobody has looked yet."""
        if budget is not None:
            budget.members.append(self)

    @property
    def name(self) -> str:
        return self.engine.package.name

    def _fields(self) -> dict[str, Any]:
        """What a log line about the model carries besides its text."""
        return {"package": self.name}

    # Falling asleep

    @property
    def is_busy(self) -> bool:
        """Whether it has a call, also one that was cancelled and still runs."""
        return bool(self.engine.live) or any(worker.in_flight for pool in self.engine.pools for worker in pool.workers)

    @property
    def may_sleep(self) -> bool:
        """Whether it has nothing to do: no call, and no worker that is being started or replaced."""
        # Streams run in workers that retain memory, and are no calls.
        if self.state != AWAKE or self.engine.package.retained_bytes or self.is_busy:
            return False
        # One that keeps failing stays: its worker is tried again and again, until it serves.
        settled = all(pool.supervisor.is_ready for pool in self.engine.pools)
        workers = (worker for pool in self.engine.pools for worker in pool.workers)
        return settled and not any(worker.state in (STARTING, LOADING) for worker in workers)

    def may_yield(self, now: float) -> bool:
        """Whether it may be put to sleep for the sake of another: it is idle, and has not just been woken."""
        if not self.may_sleep:
            return False
        if self.last_used == self._since:
            # It was loaded at the start of the server, and nobody has used it since.
            return True
        longest = self.settings.timeout / SHARE_OF_TIMEOUT
        return now - self._since >= self._damping.stay(self.load_seconds, longest)

    def sleep(self, reason: str, why: str) -> None:
        """Retire all workers. Their memory is free when they have ended: see `uses_memory`."""
        self.state, self._since, self.granted = ASLEEP, self.engine.clock(), False
        self._fell_asleep = self._since
        self.engine.metrics.sleeps[reason] += 1
        log.info("goes to sleep: %s", why, extra=self._fields())
        for pool in self.engine.pools:
            pool.supervisor.sleep()
        self.on_sleep()

    def tick(self, now: float) -> None:
        """Look at the model: sleep when it was idle for long enough, refuse calls that have waited for too long."""
        self.note_use(now)
        self.measure()
        if self.state == ASLEEP and self.engine.live:
            # A call that a dying worker gave back.
            self.wake()
        elif self.state == WAKING:
            self._refuse_late(now)
            self._give_up(self.budget, now)
        elif self._is_idle(now) and self.may_sleep:
            self.sleep(IDLE, f"no request for {now - self.last_used:.1f} s")
        if self.budget is not None:
            self.budget.look()

    def _is_idle(self, now: float) -> bool:
        after = self.settings.sleep_after
        idle = after > 0 and now - self.last_used >= after * self._damping.factor
        # A server that stops needs no memory, unless another model waits for it: that is for the budget to decide.
        return idle and not self.engine.draining

    def note_use(self, now: float) -> None:
        """Note whether it was used since the last look. Nothing is noted per request, which would cost each of them."""
        if self.is_busy or self.engine.done != self._done:
            self.last_used, self._done = now, self.engine.done

    # Waking

    def arrive(self, call: Call) -> Fault | None:
        """Wake the model for a call that is submitted. Returns the fault of a call that is one too many to wait."""
        if self.state in (AWAKE, NEW):
            return None
        if not call.background and len(self.engine.entrance.queue) >= self.settings.wake_queue:
            self.engine.metrics.dropped["waking"] += 1
            return self.fault()
        if self.state == ASLEEP:
            self.wake()
        return None

    def wake(self) -> None:
        """Have the workers started, at once or when there is memory for them."""
        self.state, self._since = WAKING, self.engine.clock()
        self.engine.metrics.wakes += 1
        log.info("wakes after %.1f s of sleep", self._since - self._fell_asleep, extra=self._fields())
        self.ask()

    def ask(self) -> None:
        """Start the workers, once there is memory for them."""
        if self.budget is None:
            self.start()
        else:
            self.budget.ask(self)

    def start_first(self) -> None:
        """Load the model for the first time, unless an earlier process has."""
        if self.state == NEW:
            self.ask()

    def start(self) -> None:
        """Start the workers: there is memory for them."""
        # A sleep that began before this process did says nothing about how often the model wakes.
        if self._started:
            self._damp(self.engine.clock() - self._fell_asleep)
        self.granted, self._started, self._waits_openly = True, self.engine.clock(), False
        for pool in self.engine.pools:
            # The end of a worker may give memory to a model that waits for it while the server stops.
            if not pool.supervisor.stopping:
                pool.supervisor.wake()

    def _damp(self, slept: float) -> None:
        """Have it stay awake for longer where its sleep was too short to be worth a load."""
        if self._damping.woken(slept, self.load_seconds):
            log.warning(
                "slept for %.1f s only, and takes %.1f s to load: from now on it stays awake %d times as long "
                "(fix: a larger --sleep-after, or a larger --memory-budget)",
                slept, self.load_seconds, self._damping.factor, extra=self._fields(),
            )  # fmt: skip

    def loaded(self) -> None:
        """Note that a worker is ready. Where every pool has one, the model is awake."""
        if self.state not in (NEW, WAKING) or not all(pool.supervisor.is_ready for pool in self.engine.pools):
            return
        now = self.engine.clock()
        self._loads.append(now - self._started)
        if self.state == WAKING:
            log.info("is awake after %.1f s", now - self._since, extra=self._fields())
        self.state, self._since, self.last_used = AWAKE, now, now
        self.measure()

    def worker_ended(self, pool: Pool) -> None:
        """Give back what a pool without workers still has, and let others have the memory."""
        if self.state == ASLEEP and not pool.workers:
            pool.supervisor.launcher.rest()
        if self.budget is not None:
            self.budget.look()

    def _give_up(self, budget: MemoryBudget | None, now: float) -> None:
        """Sleep on where nobody waits any more and the model cannot be loaded, so that others have the memory."""
        if budget is None or self.engine.live or self.has_workers:
            return
        budget.withdraw(self)
        self.state, self._since, self.granted = ASLEEP, now, False
        for pool in self.engine.pools:
            # Where the workers keep failing, the next is started by a call, and no longer by the clock.
            pool.supervisor.sleep()

    def _refuse_late(self, now: float) -> None:
        longest = self.settings.wake_timeout
        if longest:
            pool = self.engine.pools[0]
            late = [call for call in pool.dispatcher.queue.waiting() if now - call.arrived >= longest]
            pool.refuse(late, self.fault())

    def fault(self) -> Fault:
        """The answer to a call that does not wait for the waking, or not any longer."""
        passed = self.engine.clock() - self._started if self.granted else 0.0
        left = max(1, min(LONGEST_RETRY, math.ceil(self.load_seconds - passed)))
        if self.budget is not None and not self.granted:
            self._mention_wait(self.budget)
            return Fault(
                503, "waking", "the model is asleep, and others use the memory it needs; try again later", left
            )
        return Fault(503, "waking", "the model was asleep and is being loaded; try again later", left)

    def _mention_wait(self, budget: MemoryBudget) -> None:
        """Say in the log, once for each sleep, who uses the memory that it waits for."""
        users = budget.users_besides(self)
        if users and not self._waits_openly:
            self._waits_openly = True
            log.warning(
                "cannot wake: %s %s in use, and there is no memory for %s (fix: a larger --memory-budget or "
                "--gpu-memory-budget, or another server for one of them)",
                ", ".join(users), "is" if len(users) == 1 else "are", "both" if len(users) == 1 else "all",
                extra=self._fields(),
            )  # fmt: skip

    @property
    def load_seconds(self) -> float:
        """How long the next load takes, as earlier ones suggest."""
        return statistics.median(self._loads) if self._loads else UNKNOWN_LOAD

    # Memory

    @property
    def uses_memory(self) -> bool:
        """Whether it uses memory: it may, or its workers have not ended yet."""
        return self.granted or self.has_workers

    @property
    def has_workers(self) -> bool:
        """Whether there is a process of it, also one that is about to end."""
        return any(pool.workers for pool in self.engine.pools)

    def measure(self) -> None:
        """Look how much memory its workers use, where somebody counts it."""
        if self.budget is None or self.state != AWAKE:
            return
        workers = [worker for pool in self.engine.pools for worker in pool.workers]
        self._seen = max(self._seen or 0, sum(worker.memory() for worker in workers))
        gpu = self.budget.gpu_memory(workers, self._since)
        if gpu is not None:
            self._seen_gpu = max(self._seen_gpu or 0, gpu)

    @property
    def need(self) -> tuple[int | None, int | None]:
        """Bytes of memory, and of GPU memory, that it needs: what its settings say, else the most that it was seen to
        use; None: nobody knows yet."""
        return self.settings.memory or self._seen, self.settings.gpu_memory or self._seen_gpu

    # Before and after this process

    def last_life(self) -> LastLife:
        """What is to be remembered of it."""
        workers = tuple(pool.supervisor.least for pool in self.engine.pools)
        return LastLife(self.engine.description, workers, self.load_seconds, self._seen, self._seen_gpu)

    def resume(self, life: LastLife) -> None:
        """Begin asleep: an earlier process has loaded it."""
        self.state = ASLEEP
        self._loads.append(life.seconds)
        self._seen, self._seen_gpu = life.memory, life.gpu_memory
