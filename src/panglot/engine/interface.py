"""The one interface between the web and the code that runs scripts: the states of an engine, and its methods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from panglot.engine.call import Call, Fault
from panglot.engine.memory.buffers import SharedBuffer
from panglot.metrics.counters import Gauge
from panglot.settings.counts import WorkerCount

LOADING, READY, BACK_OFF, DRAINING = "loading", "ready", "back-off", "draining"
ASLEEP, WAKING = "asleep", "waking"
SERVING = frozenset({READY, ASLEEP, WAKING})
"""The states in which a request is answered. A model that sleeps is woken by the request, which waits for it."""


@dataclass(frozen=True)
class Trouble:
    """A script error worth showing: on the page and in the log, never to a client."""

    when: float
    request_id: str
    message: str
    traceback: str
    held: tuple[str, ...] = ()
    """The requests that a worker had when it died, by their ids."""


class Engine(Protocol):
    """Submit a call; it is answered through its own `reply` or `fail`."""

    @property
    def state(self) -> str:
        """LOADING, READY, BACK_OFF, ASLEEP, WAKING or DRAINING."""

    @property
    def description(self) -> dict[str, Any]:
        """What the script's worker said when it was ready: its API, its example, how it batches."""

    def submit(self, call: Call) -> Fault | None:
        """Take the call, or return the fault to answer it with."""

    def cancel(self, call: Call) -> None:
        """Cancel a call: no client waits for its answer any more."""

    def job_capacity(self) -> int:
        """How many jobs it can have: as many as can run, and one more for each worker; 0 while it takes no jobs."""

    def buffer(self, size: int) -> SharedBuffer | None:
        """Shared memory for a body of so many bytes; None: the body stays in pieces."""

    def pause_stream(self, call: Call, paused: bool) -> None:
        """Pause or resume the stream that answers a call, where this pauses no other call. The pause ends with it."""

    def trouble(self, request_id: str, message: str, traceback: str, worker: int | None = None) -> None:
        """Note a script's failure in the log and for the page."""

    def reload(self) -> None:
        """Load the script again while the old one serves on."""

    @property
    def troubles(self) -> Sequence[Trouble]:
        """The last script failures, oldest first."""

    def gauges(self) -> list[Gauge]:
        """Name, help, labels and value of each figure that is read on demand."""

    def sizes(self) -> list[dict[str, Any]]:
        """How many workers each pool may have, is to have and has: `pool`, `workers`, `wanted`, `ready`, `changes`."""

    def workers(self) -> list[dict[str, Any]]:
        """The workers as the page shows them: index, state, step, pid, served, in_flight, seconds in this state."""

    def scale(self, count: WorkerCount) -> None:
        """Have so many workers from now on, with several fronts this front's share of so many.

        Raises StartError where nobody can choose one number for the whole model.
        """
