"""The jobs of a server as the web sees them, and what runs the jobs of one model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from panglot.engine.call import Call, CallProgress, Fault, MemoryQuota
from panglot.jobs.job import Job, NewJob, StoredAnswer

if TYPE_CHECKING:
    from panglot.jobs.held import HeldCall, HeldJobs


class JobState(NamedTuple):
    """A job as it is now: its stored row, and the figures that only the running call has."""

    job: Job
    durable: bool
    progress: CallProgress | None = None
    printed: str = ""
    parts: int = 0
    """How many parts of a streamed answer have come."""


class ModelCount(NamedTuple):
    """How many jobs of a model are in a state."""

    model: str
    state: int
    jobs: int


class Jobs(Protocol):
    """All jobs of a server, on the event loop of a front: the board itself, or the way to the front that has it.

    Whatever is awaited here raises JobTrouble.
    """

    durable: bool
    held: HeldJobs
    """The jobs of this front whose clients wait for the answer."""

    @property
    def is_used(self) -> bool:
        """Whether there are jobs, or a folder for them."""

    def submit(self, job: NewJob, then: Callable[[Any], None], within: float) -> None:
        """Store a job; `then` gets it with whether it is new, or a JobTrouble, once it is stored.

        `within` is how many seconds the client waits for the store, where another front has it.
        """

    def adopt(self, call: HeldCall, then: Callable[[Any], None]) -> None:
        """Store a held job, which runs on; `then` gets it as it is stored, or a JobTrouble."""

    def watch(self, name: str) -> AbstractContextManager[asyncio.Event]:
        """An event that is set whenever a job changes. Raises JobTrouble for too many readers."""

    def shorten(self, name: str, seconds: float) -> None:
        """Store a job that has ended for so many seconds from now at most."""

    def gauges(self) -> list[tuple[str, str, dict[str, str], float]]:
        """Name, help, labels and value of each figure of /metrics that this front tells."""

    async def get(self, name: str) -> JobState | None:
        """A job as it is now."""

    async def by_key(self, owner: str, model: str, key: str) -> JobState | None:
        """The job of an Idempotency-Key."""

    async def wait(self, name: str, seconds: float) -> JobState | None:
        """A job once it has ended, or as it is after so many seconds, or when the server stops."""

    async def answer(self, name: str) -> StoredAnswer | None:
        """The stored answer of a job; None where it has none."""

    async def request(self, name: str) -> tuple[bytes, bytes] | None:
        """The head and the body of a job's request."""

    async def parts(self, name: str, after: int) -> list[bytes]:
        """The parts of a streamed answer behind the first `after`, as far as they have come."""

    async def new_parts(self, name: str) -> list[bytes]:
        """The parts since the last call; a job that began again has all of its parts again."""

    async def listed(self, states: tuple[int, ...], model: str, before: int, most: int) -> list[JobState]:
        """The newest jobs."""

    async def counts(self) -> list[ModelCount]:
        """How many jobs there are."""

    async def cancel(self, name: str) -> JobState | None:
        """End a job, unless it has ended. Returns its new state."""

    async def purge(self, model: str, owner: str | None = None) -> int:
        """Cancel the waiting jobs of a model, or of one owner only. Returns their number."""

    async def erase(self, name: str) -> JobState | None:
        """Remove the body and the answer of a job that has ended."""

    async def requeue(self, name: str, lifetime: float) -> JobState | None:
        """Queue a failed job once more; None where it has not failed."""


class JobRunner(Protocol):
    """Runs the jobs of one model."""

    @property
    def quota(self) -> MemoryQuota:
        """The quota that counts the bodies of running jobs."""

    attempts: int
    """How often a job may be started, after deaths of workers."""

    def ends_late(self, job: Job) -> bool:
        """Whether the end of a job's lifetime also ends its run."""

    def free(self) -> int:
        """How many jobs it can have at a time, the jobs that it has and has not answered included."""

    def submit(self, call: Call) -> Fault | None:
        """Take the call, or return why not."""

    def cancel(self, call: Call) -> None:
        """Cancel the call."""

    def write_fault(self, route: str, fault: Fault, request_id: bytes) -> tuple[int, bytes, bytes]:
        """Status, head and body of the answer for a fault."""
