"""The jobs of a running server: their board, the models that run them, and the webhooks."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
from collections.abc import Callable, Sequence
from pathlib import Path

import orjson

from panglot.jobs.board import JobBoard
from panglot.jobs.interface import JobState
from panglot.jobs.job import DAMAGED, DueWebhook, JobLimits, JobTrouble, StoredAnswer, Webhook
from panglot.jobs.webhooks.live import LiveWebhooks
from panglot.jobs.webhooks.sending import WebhookContent, WebhookSender
from panglot.settings import Settings
from panglot.web.jobs.model_jobs import JobsOfModel, ModelRunner
from panglot.web.jobs.views import model_key, moment, route_of, view
from panglot.web.models import Model, Models

IN_MEMORY, ON_DISK = JobLimits(1000, 64 << 20, 1000), JobLimits(1_000_000, 10 << 30, 1_000_000)
INLINE = 20_000
"""Bytes of the largest JSON answer that a webhook carries."""
LOOK_AGAIN = 0.05

log = logging.getLogger("panglot")


class JobHost:
    """Owns the board of jobs, and attaches the models that come and go."""

    def __init__(
        self,
        settings: Settings,
        models: Models,
        keys: Sequence[bytes] = (),
        board: JobBoard | None = None,
        free_elsewhere: Callable[[Model], int] = lambda model: 0,
    ) -> None:
        """Opens the folder of `--jobs`. Raises StartError.

        `board` replaces the board of the settings; `free_elsewhere` tells how many jobs of a model other fronts take.
        """
        self.models = models
        self.jobs = self.board = board or JobBoard(Path(settings.jobs) if settings.jobs else None, limits(settings))
        self._free_elsewhere = free_elsewhere
        self._runners: dict[Model, ModelRunner] = {}
        self.sender = WebhookSender(self.board, settings.webhook_allow, list(keys), self._webhook_content)
        self.live = LiveWebhooks(self.board, self.sender, self._live_body)
        if self.board.has_stored:
            self.board.open()
        models.watch(self._attach)
        self._attach()

    def _attach(self) -> None:
        """Let the present models run their jobs, and no others."""
        present = set(self.models)
        for model in [model for model in self._runners if model not in present]:
            self.board.detach(model_key(model), self._runners.pop(model))
        for model in present - self._runners.keys():
            runner = self._runners[model] = ModelRunner(model, functools.partial(self._free_elsewhere, model))
            model.jobs = JobsOfModel(self.board, model)
            self.board.attach(model_key(model), runner)

    def start(self) -> None:
        """Begin to run what is stored."""
        if self.sender.allowed:
            self.board.on_outbox = self._tell
        self.board.start()

    def stop_feeding(self) -> None:
        """Start no further job: the server is stopping."""
        self.board.stop_feeding()

    async def drain(self) -> None:
        """Wait for the jobs that run."""
        while self.board.running:  # noqa: ASYNC110  the last seconds of a server
            await asyncio.sleep(LOOK_AGAIN)

    def _tell(self) -> None:
        self.sender.look()
        self.live.look()

    async def close(self) -> None:
        self.live.close()
        self.sender.close()
        await self.board.close()

    # Webhooks

    async def _webhook_content(self, event: DueWebhook) -> WebhookContent | None:
        """What an event is sent with; None: the job was removed. Raises JobTrouble when the job cannot be read now."""
        state = await self.board.by_seq(event.seq)
        if state is None:
            return None
        answer = None
        if state.job.is_ended:
            # The event about the end must come after all events about the run.
            await self.live.settled(state.job.id)
            try:
                answer = await self.board.answer(state.job.id)
            except JobTrouble as trouble:
                if trouble.code != DAMAGED:
                    raise
                # It will never be whole again. The receiver is told without it.
                log.error("webhook %s is sent without its answer: %s", event.id, trouble)
        trace = Webhook.from_text(state.job.webhook).trace if state.job.webhook else ()
        return WebhookContent(self._written(state, event.event, answer), trace)

    async def _live_body(self, state: JobState, event: str, so_far: StoredAnswer) -> bytes:
        return self._written(state, event, so_far)

    def _written(self, state: JobState, event: str, answer: StoredAnswer | None) -> bytes:
        """The body in the form of the route's platform, or in Panglot's own form."""
        route = route_of(self.models, state.job)
        if route is not None and route.job is not None and route.job.webhook is not None:
            return route.job.webhook(state, event, answer)
        return _payload(state, event, answer)


def _payload(state: JobState, event: str, answer: StoredAnswer | None) -> bytes:
    """The body of a webhook: the job, with its answer if the answer is JSON and small."""
    data = view(state)
    if answer is not None and answer.head.startswith(b"application/json") and len(answer.body) <= INLINE:
        # A script may call anything JSON, and `NaN` is none: the receiver finds such an answer at its address.
        with contextlib.suppress(orjson.JSONDecodeError):
            data["answer"] = orjson.loads(answer.body)
    when = state.job.ended or state.job.started or state.job.accepted
    return orjson.dumps({"type": f"job.{event}", "timestamp": moment(when), "data": data})


def limits(settings: Settings) -> JobLimits:
    """The limits of stored jobs, by default larger on disk than in memory."""
    usual = ON_DISK if settings.jobs else IN_MEMORY
    count = settings.jobs_count or usual.jobs
    return JobLimits(count, settings.jobs_bytes or usual.bytes, settings.jobs_queued or count)
