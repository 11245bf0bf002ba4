"""The jobs of one model: the runner for its engine, and the view that pages of its dialect have of them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from starlette.requests import Request

from panglot.engine.call import Call, Fault
from panglot.jobs.interface import Jobs, JobState
from panglot.jobs.job import ID, STATES, Job, JobTrouble, StoredAnswer
from panglot.web.contract import InferRoute, RouteRefused, v2_error
from panglot.web.jobs import asking
from panglot.web.jobs.viewer import Viewer
from panglot.web.jobs.views import model_key
from panglot.web.limits.quota import ByteQuota
from panglot.web.models import Model

BREATH = 0.1
"""Seconds between two looks at a job that changes all the time."""
RETRIED_FOR = 86400.0
"""Seconds that a job which is queued once more may wait for a worker."""


class ModelRunner:
    """Runs the jobs of a model on its engine."""

    def __init__(self, model: Model, free_elsewhere: Callable[[], int] = lambda: 0) -> None:
        """`free_elsewhere` is how many jobs other fronts of the server can take for this model."""
        self.model = model
        self.attempts = model.settings.jobs_attempts
        self._free_elsewhere = free_elsewhere

    @property
    def quota(self) -> ByteQuota:
        return self.model.quota

    def ends_late(self, job: Job) -> bool:
        route = self._route(job.route).job
        return route is not None and route.lifetime_ends_run

    def free(self) -> int:
        """How many jobs the model can have: those that workers run, and a next one for each; none while it loads."""
        own = self.model.engine.job_capacity()
        # Jobs reach other fronts by way of the own engine: one that takes no job lends none.
        return own + self._free_elsewhere() if own else 0

    def submit(self, call: Call) -> Fault | None:
        return self.model.engine.submit(call)

    def cancel(self, call: Call) -> None:
        self.model.engine.cancel(call)

    def write_fault(self, route: str, fault: Fault, request_id: bytes) -> tuple[int, bytes, bytes]:
        """The answer for a fault, as the platform of the job's route writes it."""
        answer = self.model.error_answer(self._route(route), fault, request_id)
        return answer.status, answer.head, answer.body

    def _route(self, path: str) -> InferRoute:
        routes = (route for route in self.model.contract.routes if route.path == path)
        # A path of tensors is no route of the model's own contract.
        error = v2_error if path.startswith("/v2/") else None
        return next(routes, InferRoute(path, path, error=error))


class JobsOfModel:
    """The `ModelJobs` of a model."""

    def __init__(self, board: Jobs, model: Model) -> None:
        self._board = board
        self._model = model_key(model)

    def of(self, request: Request) -> JobsOfClient:
        return JobsOfClient(self._board, self._model, Viewer.of(request))

    async def counts(self) -> Mapping[str, int]:
        """How many jobs there are, by the names of their states. Raises RouteRefused."""
        counts = dict.fromkeys(STATES, 0)
        with refusing():
            for model, state, count in await self._board.counts():
                counts[STATES[state]] += count if model == self._model else 0
        return counts


class JobsOfClient:
    """The `ClientJobs` of a model: each method looks first whether the job is the model's, and the client's.

    Errors of the store become faults that the platform words.
    """

    def __init__(self, board: Jobs, model: str, viewer: Viewer) -> None:
        self._board = board
        self._model = model
        self._viewer = viewer

    def _own(self, state: JobState | None) -> JobState | None:
        return state if state is not None and state.job.model == self._model and self._viewer.sees(state.job) else None

    async def find(self, name: str) -> JobState | None:
        with refusing():
            return self._own(await self._board.get(name)) if ID.fullmatch(name) else None

    async def by_key(self, key: str) -> JobState | None:
        with refusing():
            return self._own(await self._board.by_key(self._viewer.name, self._model, key))

    async def wait(self, name: str, seconds: float) -> JobState | None:
        # Before the wait: no client waits for a job of another client.
        if await self.find(name) is None:
            return None
        with refusing():
            return self._own(await self._board.wait(name, seconds))

    async def answer(self, name: str) -> StoredAnswer | None:
        if await self.find(name) is None:
            return None
        with refusing():
            return await self._board.answer(name)

    async def request(self, name: str) -> tuple[bytes, bytes] | None:
        if await self.find(name) is None:
            return None
        with refusing():
            return await self._board.request(name)

    async def parts(self, name: str, after: int = 0) -> list[bytes]:
        if await self.find(name) is None:
            return []
        with refusing():
            return await self._board.parts(name, after)

    async def new_parts(self, name: str) -> list[bytes]:
        """The parts since the last time; a job that began anew has all of its parts again."""
        if await self.find(name) is None:
            return []
        with refusing():
            return await self._board.new_parts(name)

    async def follow(self, name: str) -> AsyncIterator[JobState]:
        """The job whenever something of it has changed, at most ten times a second."""
        # Before the look: another client's job must not take a place among the readers.
        if await self.find(name) is None:
            return
        with refusing(), self._board.watch(name) as changed:
            while True:
                changed.clear()
                state = await self.find(name)
                if state is None:
                    return
                yield state
                if state.job.is_ended:
                    return
                # A pause, not a wait alone: a job may change a thousand times a second.
                await asyncio.sleep(BREATH)
                await changed.wait()

    async def cancel(self, name: str) -> JobState | None:
        if await self.find(name) is None:
            return None
        with refusing():
            return await self._board.cancel(name)

    async def retry(self, name: str) -> JobState | None:
        if await self.find(name) is None:
            return None
        with refusing():
            return await self._board.requeue(name, RETRIED_FOR)

    async def purge(self) -> int:
        with refusing():
            return await self._board.purge(self._model, None if self._viewer.sees_all else self._viewer.name)


class refusing(contextlib.AbstractContextManager[None]):  # noqa: N801  used like a function
    """Turns a JobTrouble of the store into RouteRefused."""

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        if isinstance(error, JobTrouble):
            raise RouteRefused(asking.fault(error)) from None
