"""When one model sleeps, and when it is started again. Its workers may be those of several fronts."""

from __future__ import annotations

import logging
import statistics
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from panglot.engine.interface import ASLEEP, WAKING
from panglot.engine.sleep.damping import SleepDamping

if TYPE_CHECKING:
    from panglot.engine.sleep.budget import MemoryBudget
    from panglot.engine.sleep.engine_sleep import Sleepable

NEW, AWAKE = "new", "awake"
"""The states besides ASLEEP and WAKING. NEW: it has not been loaded yet."""
IDLE, BUDGET = "idle", "budget"
"""Why a model goes to sleep: nobody uses it, or another one needs its memory."""
LOADS = 5
"""Loads that tell how long the next one takes."""
UNKNOWN_LOAD = 5.0
"""Seconds that a load is taken for where there was none yet."""
SHARE_OF_TIMEOUT = 4
"""A model that was woken yields its memory after this part of a request's time at the latest (4: a fourth), so that
requests for the model that waits for this memory are answered in time."""

log = logging.getLogger("panglot.engine")


class Sleeper:
    """Retires the workers of one model, and has them started again. All of it runs on one thread.

    NEW -> AWAKE: its first load has ended. AWAKE -> ASLEEP: nobody has used it for `sleep_after`, or another model
    needs its memory. ASLEEP -> WAKING: a call has come. WAKING -> AWAKE: every pool has a worker that is ready;
    or WAKING -> ASLEEP: its calls were cancelled before there was memory for it. A model with a call never sleeps.
    """

    def __init__(self, model: Sleepable, budget: MemoryBudget | None, clock: Callable[[], float]) -> None:
        self.model = model
        self.budget = budget
        self.state = NEW
        self._clock = clock
        self.last_used = clock()
        self._since = clock()
        """When it took on its state."""
        self.granted = False
        """Whether the memory that it needs is its own, from before its workers start until it goes to sleep."""
        self.started = 0.0
        """When its workers were last started; 0: not by this process."""
        self._fell_asleep = clock()
        self._waits_openly = False
        """Whether the log has said, since it was last awake, that others leave no memory for it."""
        self._damping = SleepDamping()
        self._loads: deque[float] = deque(maxlen=LOADS)
        self._done = 0
        self._seen: int | None = None
        self._seen_gpu: int | None = None
        """The most memory, and GPU memory, that it was seen to use; None: not measured yet."""
        if budget is not None:
            budget.members.append(self)

    @property
    def name(self) -> str:
        return self.model.name

    def _fields(self) -> dict[str, Any]:
        """What a log line about the model carries besides its text."""
        return {"package": self.name}

    # Falling asleep

    @property
    def may_sleep(self) -> bool:
        """Whether it has nothing to do: no call, and no worker that is being started or replaced."""
        # One that keeps failing stays: its worker is tried again and again, until it serves.
        return self.state == AWAKE and not self.model.is_busy and self.model.is_settled

    def may_yield(self, now: float) -> bool:
        """Whether it may be put to sleep for the sake of another: it is idle, and has not just been woken."""
        if not self.may_sleep:
            return False
        if self.last_used == self._since:
            # `loaded` sets both to one moment: nobody has used the model since it was loaded.
            return True
        longest = self.model.timeout / SHARE_OF_TIMEOUT
        return now - self._since >= self._damping.stay(self.load_seconds, longest)

    def sleep(self, reason: str, why: str) -> None:
        """Retire all workers. Their memory is free when they have ended: see `uses_memory`."""
        self.state, self._since, self.granted = ASLEEP, self._clock(), False
        self._fell_asleep = self._since
        log.info("goes to sleep: %s", why, extra=self._fields())
        self.model.retire_workers(reason)

    def tick(self, now: float) -> None:
        """Look at the model: sleep when it was idle for long enough."""
        self.note_use(now)
        self.measure()
        if self.state == ASLEEP and self.model.has_calls:
            # A call that a dying worker gave back.
            self.wake()
        elif self.state == WAKING:
            self._give_up(self.budget, now)
        elif self._is_idle(now) and self.may_sleep:
            self.sleep(IDLE, f"no request for {now - self.last_used:.1f} s")
        if self.budget is not None:
            self.budget.look()

    def _is_idle(self, now: float) -> bool:
        after = self.model.sleep_after
        idle = after > 0 and now - self.last_used >= after * self._damping.factor
        # A server that stops needs no memory, unless another model waits for it: that is for the budget to decide.
        return idle and not self.model.is_draining

    def note_use(self, now: float) -> None:
        """Note whether it was used since the last look. Nothing is noted per request, which would cost each of them."""
        if self.model.is_busy or self.model.done != self._done:
            self.last_used, self._done = now, self.model.done

    # Waking

    def wake(self) -> None:
        """Have the workers started, at once or when there is memory for them."""
        self.state, self._since = WAKING, self._clock()
        self.model.count_wake()
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
        if self.started:
            self._damp(self._clock() - self._fell_asleep)
        self.granted, self.started, self._waits_openly = True, self._clock(), False
        self.model.start_workers()

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
        if self.state not in (NEW, WAKING) or not self.model.is_loaded:
            return
        now = self._clock()
        self._loads.append(now - self.started)
        if self.state == WAKING:
            log.info("is awake after %.1f s", now - self._since, extra=self._fields())
        self.state, self._since, self.last_used = AWAKE, now, now
        self.measure()

    def _give_up(self, budget: MemoryBudget | None, now: float) -> None:
        """Sleep on where nobody waits any more and the model cannot be loaded, so that others have the memory."""
        if budget is None or self.model.has_calls or self.has_workers:
            return
        budget.withdraw(self)
        self.state, self._since, self.granted = ASLEEP, now, False
        # Where the workers keep failing, the next is started by a call, and no longer by the clock.
        self.model.retire_workers("")

    @property
    def waits_for_memory(self) -> bool:
        return self.budget is not None and not self.granted

    def mention_wait(self) -> None:
        """Say in the log, once for each sleep, who uses the memory that it waits for."""
        users = self.budget.users_besides(self) if self.budget is not None else []
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
        return self.model.has_workers

    def measure(self) -> None:
        """Measure the memory of its workers, where there is a budget."""
        if self.budget is None or self.state != AWAKE:
            return
        machine, gpu = self.model.used(self._since)
        self._seen = max(self._seen or 0, machine)
        if gpu is not None:
            self._seen_gpu = max(self._seen_gpu or 0, gpu)

    @property
    def need(self) -> tuple[int | None, int | None]:
        """Bytes of memory, and of GPU memory, that it needs: by its settings, else the most that it was seen to use;
        None: not known yet."""
        return self.model.memory or self.seen[0], self.model.gpu_memory or self.seen[1]

    @property
    def seen(self) -> tuple[int | None, int | None]:
        """The most memory, and GPU memory, that it was seen to use."""
        return self._seen, self._seen_gpu

    def resume(self, seconds: float, memory: int | None, gpu_memory: int | None) -> None:
        """Begin asleep: an earlier process has loaded it in so many seconds, and has seen it use this memory."""
        self.state = ASLEEP
        self._loads.append(seconds)
        self._seen, self._seen_gpu = memory, gpu_memory
