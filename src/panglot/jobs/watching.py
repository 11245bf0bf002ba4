"""The readers that follow jobs in this process, and the wait for the end of a job."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator

from panglot.jobs.interface import JobState
from panglot.jobs.job import UNAVAILABLE, JobTrouble

MOST_READERS, MOST_READERS_OF_JOB = 1000, 16
MOST_CURSORS = 1024
"""Jobs for which the number of parts that were handed out is remembered."""
STOPPING = "the server is stopping, and the job is not stored on disk: send it again"


class Watchers:
    """The readers of jobs, by the job's id."""

    def __init__(self) -> None:
        self.by_job: dict[str, set[asyncio.Event]] = {}
        self._readers = 0

    @contextlib.contextmanager
    def watch(self, name: str) -> Iterator[asyncio.Event]:
        """An event that is set whenever a job changes. Raises JobTrouble for too many readers."""
        watchers = self.by_job.get(name, set())
        if len(watchers) >= MOST_READERS_OF_JOB or self._readers >= MOST_READERS:
            raise JobTrouble("jobs_readers", "too many clients follow jobs; try again later")
        changed = asyncio.Event()
        watchers.add(changed)
        self.by_job[name] = watchers
        self._readers += 1
        try:
            yield changed
        finally:
            self._readers -= 1
            watchers.discard(changed)
            if not watchers:
                self.by_job.pop(name, None)

    def wake(self, name: str) -> None:
        for changed in self.by_job.get(name, ()):
            changed.set()

    def wake_all(self) -> None:
        for name in self.by_job:
            self.wake(name)


async def until_ended(
    get: Callable[[str], Awaitable[JobState | None]],
    name: str,
    changed: asyncio.Event,
    seconds: float,
    is_left: Callable[[JobState], bool],
) -> JobState | None:
    """A job once it has ended, or as it is after so many seconds. Raises JobTrouble.

    `is_left` tells that the server stops without running the job to its end.
    """
    until = time.monotonic() + seconds
    while True:
        # Before `get`: a change while the state is read sets the event again, and is not missed.
        changed.clear()
        state = await get(name)
        left = until - time.monotonic()
        if state is None or state.job.is_ended or left <= 0:
            return state
        if is_left(state):
            if state.durable:
                return state
            raise JobTrouble(UNAVAILABLE, STOPPING)
        with contextlib.suppress(TimeoutError):
            # At most a minute: the news of a change may be lost with the front that stores jobs.
            async with asyncio.timeout(min(left, 60.0)):
                await changed.wait()


class PartCursors:
    """How many parts of each job were handed out. One number for all clients, since a job has one client."""

    def __init__(self) -> None:
        self._taken: OrderedDict[str, int] = OrderedDict()

    async def new_parts(self, state: JobState, parts: Callable[[str, int], Awaitable[list[bytes]]]) -> list[bytes]:
        """The parts since the last call; a job that began again has all of its parts again."""
        cursor = f"{state.job.id}.{state.job.attempts}"
        after = self._taken.get(cursor, 0)
        new = await parts(state.job.id, after)
        self._taken[cursor] = after + len(new)
        self._taken.move_to_end(cursor)
        while len(self._taken) > MOST_CURSORS:
            self._taken.popitem(last=False)
        return new
