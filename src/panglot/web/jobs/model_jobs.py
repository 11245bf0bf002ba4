"""The jobs of one model: what runs them, and what the pages of its dialect may do with them."""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping
from typing import Any

from starlette.requests import Request

from panglot.engine.call import Call, Fault
from panglot.jobs.board import JobBoard, JobState
from panglot.jobs.job import ID, STATES, JobTrouble, StoredAnswer
from panglot.web.contract import InferRoute, RouteRefused, v2_error
from panglot.web.jobs import asking
from panglot.web.jobs.viewer import Viewer
from panglot.web.jobs.views import model_key
from panglot.web.limits.quota import ByteQuota
from panglot.web.models import Model

MOST_CURSORS = 1024
"""Jobs of a model whose parts are handed out once each, and are remembered how far."""
BREATH = 0.1
"""Seconds between two looks at a job that changes all the time."""
RETRIED_FOR = 86400.0
"""Seconds that a job which is queued once more may wait for a worker."""


class ModelRunner:
    """Runs the jobs of a model on its engine."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.attempts = model.settings.jobs_attempts

    @property
    def quota(self) -> ByteQuota:
        return self.model.quota

    def free(self) -> int:
        """As many as there are workers to run them, and as many to follow; none while the model is loading."""
        return self.model.engine.job_capacity()

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

    def __init__(self, board: JobBoard, model: Model) -> None:
        self._board = board
        self._model = model_key(model)
        self._cursors: OrderedDict[str, int] = OrderedDict()

    def of(self, request: Request) -> JobsOfClient:
        return JobsOfClient(self._board, self._model, Viewer.of(request), self._cursors)

    def counts(self) -> Mapping[str, int]:
        """How many jobs there are, by the names of their states."""
        counts = dict.fromkeys(STATES, 0)
        for state, name in enumerate(STATES):
            counts[name] += self._board.count(self._model, state)
        return counts


class JobsOfClient:
    """The `ClientJobs` of a model: each method looks first whether the job is the model's, and the client's.

    Errors of the store become faults that the platform words.
    """

    def __init__(self, board: JobBoard, model: str, viewer: Viewer, cursors: OrderedDict[str, int]) -> None:
        self._board = board
        self._model = model
        self._viewer = viewer
        self._cursors = cursors
        """How many parts of a job were handed out; one for all clients, since a job has one client."""

    def _own(self, state: JobState | None) -> JobState | None:
        return state if state is not None and state.job.model == self._model and self._viewer.sees(state.job) else None

    async def find(self, name: str) -> JobState | None:
        with refusing():
            return self._own(await self._board.get(name)) if ID.fullmatch(name) else None

    async def by_key(self, key: str) -> JobState | None:
        with refusing():
            return self._own(await self._board.by_key(self._viewer.name, self._model, key))

    async def wait(self, name: str, seconds: float) -> JobState | None:
        # Before the wait: for another client's job nobody waits.
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
        state = await self.find(name)
        if state is None:
            return []
        cursor = f"{name}.{state.job.attempts}"
        after = self._cursors.get(cursor, 0)
        parts = await self.parts(name, after)
        self._cursors[cursor] = after + len(parts)
        self._cursors.move_to_end(cursor)
        while len(self._cursors) > MOST_CURSORS:
            self._cursors.popitem(last=False)
        return parts

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
    """Turns what the store refuses into RouteRefused."""

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        if isinstance(error, JobTrouble):
            raise RouteRefused(asking.fault(error)) from None
