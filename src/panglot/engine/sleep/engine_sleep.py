"""What an engine knows of the sleep of its model, and what a sleep needs to know of a model."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from panglot.engine.call import Call, Fault
from panglot.engine.sleep.last_life import LastLife

if TYPE_CHECKING:
    from panglot.engine.pools.pool import Pool


class EngineSleep(Protocol):
    """The sleep of one model as its engine has it: decided here, or for all fronts of the server by their parent."""

    on_sleep: Callable[[], None]
    """Called when the model falls asleep, so that its last life is stored."""

    @property
    def state(self) -> str:
        """ASLEEP, WAKING, or another state while the model is awake."""

    @property
    def need(self) -> tuple[int | None, int | None]:
        """Bytes of memory, and of GPU memory, that the model needs; None: not known yet."""

    def start_first(self) -> None:
        """Load the model for the first time, unless an earlier process has."""

    def resume(self, life: LastLife) -> None:
        """Begin asleep: an earlier process has loaded the model."""

    def last_life(self) -> LastLife:
        """The facts by which a later process begins with the model asleep."""

    def arrive(self, call: Call) -> Fault | None:
        """Wake the model for a call that is submitted. Returns a fault where too many calls wait already."""

    def fault(self) -> Fault:
        """The answer to a call that does not wait for the waking, or not any longer."""

    def loaded(self) -> None:
        """Note that a worker is ready."""

    def worker_ended(self, pool: Pool) -> None:
        """Note that a worker of a pool has ended."""

    def tick(self, now: float) -> None:
        """Look at the model, a few times a second."""

    def close(self) -> None:
        """Forget the model: it is no longer served."""


class Sleepable(Protocol):
    """A model with its workers, as far as its sleep needs it: those of this process, or those of all fronts."""

    name: str
    sleep_after: float
    timeout: float
    memory: int
    gpu_memory: int
    """As the settings of these names say."""

    @property
    def is_draining(self) -> bool:
        """Whether the server stops."""

    @property
    def has_calls(self) -> bool:
        """Whether a call waits for its answer."""

    @property
    def is_busy(self) -> bool:
        """Whether it has a call, also one that was cancelled and still runs."""

    @property
    def done(self) -> int:
        """Calls that have their answers."""

    @property
    def is_settled(self) -> bool:
        """Whether its workers are ready, and none is being started or replaced."""

    @property
    def is_loaded(self) -> bool:
        """Whether every pool has a worker that is ready."""

    @property
    def has_workers(self) -> bool:
        """Whether there is a process of it, also one that is about to end."""

    def retire_workers(self, reason: str) -> None:
        """Have no workers. The reason is counted; without one the model has been asleep before."""

    def start_workers(self) -> None:
        """Have workers again."""

    def count_wake(self) -> None:
        """Count that it was woken."""

    def used(self, since: float) -> tuple[int, int | None]:
        """Bytes of memory that its workers use, which are ready since then, and of GPU memory; None: not known."""
