"""The jobs of a server with several fronts: the first front stores them, the other fronts pass commands to it."""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from panglot.engine.workers.link import Link
from panglot.fronts.board import JOBS as HAS_JOBS
from panglot.fronts.lending.sibling import JOBS
from panglot.fronts.member import Member
from panglot.jobs.board import JobBoard
from panglot.jobs.fronts import passing
from panglot.jobs.fronts.elsewhere import JobsElsewhere
from panglot.jobs.fronts.for_fronts import JobsForFronts
from panglot.jobs.storage.memory_folder import limits_in
from panglot.serving.job_host import JobHost, limits
from panglot.settings import Settings
from panglot.web.jobs.model_jobs import JobsOfModel
from panglot.web.models import Models

OWNER = 0
"""The index of the front that stores jobs."""


def host_of_jobs(settings: Settings, models: Models, keys: Sequence[bytes], member: Member) -> JobHost | JobsOfOthers:
    """The part of this front in the jobs of its server. Raises StartError."""
    if member.index != OWNER:
        return JobsOfOthers(models, bool(settings.jobs), member)
    board = _board(settings, member.jobs_folder)
    if board.store.folder is not None:
        # The parent: whoever stops this process gets another one.
        board.store.folder.server = os.getppid()
    board.on_open = functools.partial(member.row.__setitem__, HAS_JOBS, 1)
    member.siblings.users[JOBS] = OwnerLinks(JobsForFronts(board))
    return JobHost(settings, models, keys, board, lambda model: member.jobs_elsewhere(model.engine))


def _board(settings: Settings, folder: Path | None) -> JobBoard:
    if settings.jobs or folder is None:
        return JobBoard(Path(settings.jobs) if settings.jobs else None, limits(settings))
    return JobBoard(folder, limits_in(folder, limits(settings)), durable=False)


def _send(link: Link, number: int, command: str, value: Any) -> None:
    link.send(passing.frame(JOBS, number, command, value))


class OwnerLinks:
    """The links of the front that stores jobs to other fronts. A `LinkUser`."""

    def __init__(self, jobs: JobsForFronts) -> None:
        self._jobs = jobs
        self.lost, self.heard = jobs.lost, jobs.heard

    def linked(self, front: int, link: Link) -> None:
        self._jobs.linked(front, functools.partial(_send, link))


class JobsOfOthers:
    """Stands in for a `JobHost` in a front that stores no jobs, and has the link to the one that does. A `LinkUser`."""

    def __init__(self, models: Models, durable: bool, member: Member) -> None:
        self.jobs = JobsElsewhere(durable, lambda: bool(member.rows[OWNER][HAS_JOBS]))
        self._models = models
        member.siblings.users[JOBS] = self
        models.watch(self._attach)
        self._attach()

    def _attach(self) -> None:
        for model in self._models:
            if model.jobs is None:
                model.jobs = JobsOfModel(self.jobs, model)

    # As LinkUser

    def linked(self, front: int, link: Link) -> None:
        if front == OWNER:
            self.jobs.linked(functools.partial(_send, link))

    def lost(self, front: int) -> None:
        if front == OWNER:
            self.jobs.lost()

    def heard(self, front: int, payload: memoryview) -> None:
        self.jobs.heard(payload)

    # As JobHost

    def start(self) -> None:
        """Nothing: jobs are run by the front that stores them."""

    def stop_feeding(self) -> None:
        self.jobs.stop()

    async def drain(self) -> None:
        """Nothing: jobs that run here are calls of another front."""

    async def close(self) -> None:
        """Nothing is open."""
