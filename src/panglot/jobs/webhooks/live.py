"""Telling receivers of webhooks about a running job: its output so far, and the text that it has printed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from panglot.jobs.board import JobBoard
from panglot.jobs.interface import JobState
from panglot.jobs.job import LIVE_EVENTS, LOGS, OUTPUT, DueWebhook, JobTrouble, StoredAnswer, Webhook
from panglot.jobs.running import JobCall
from panglot.jobs.webhooks.sending import TIMEOUT, WebhookSender

log = logging.getLogger("panglot.jobs")
MakeLiveBody = Callable[[JobState, str, StoredAnswer], Awaitable[bytes]]
"""Makes the body of an event from the job, the event, and the parts of its answer that have come."""


class LiveWebhooks:
    """Follows the running jobs whose webhook wants these events.

    Events of a job are sent one at a time, and at most as often as the webhook says. A lost event is not sent again:
    the next event has its content too. Only events of `WebhookSender` are stored and sent again.
    """

    def __init__(self, board: JobBoard, sender: WebhookSender, make_body: MakeLiveBody) -> None:
        self._board = board
        self._sender = sender
        self._make_body = make_body
        self._following: dict[str, asyncio.Task[None]] = {}

    def look(self) -> None:
        """Follow the jobs that have begun to run."""
        for name, call in self._board.running.items():
            webhook = Webhook.from_text(call.job.webhook) if call.job.webhook else None
            if webhook is None or name in self._following or not set(LIVE_EVENTS) & set(webhook.events):
                continue
            task = self._following[name] = asyncio.ensure_future(self._follow(call, webhook))
            task.add_done_callback(lambda done, name=name: self._following.pop(name, None))  # type: ignore[misc]

    async def settled(self, name: str) -> None:
        """Wait until no event of a job that has ended is on its way, so that its end comes last."""
        task = self._following.get(name)
        if task is not None:
            await asyncio.wait({task}, timeout=TIMEOUT)

    def close(self) -> None:
        for task in list(self._following.values()):
            task.cancel()

    async def _follow(self, call: JobCall, webhook: Webhook) -> None:
        name, reported = call.job.id, {OUTPUT: 0, LOGS: 0}
        number = 0
        try:
            with self._board.watch(name) as changed:
                # The first pause lets the event about the start go first.
                while await self._pause(call, webhook.every):
                    changed.clear()
                    now = {OUTPUT: len(call.parts), LOGS: len(call.printed_text)}
                    for event in LIVE_EVENTS:
                        if event in webhook.events and now[event] != reported[event]:
                            number += 1
                            await self._tell(call, DueWebhook(0, f"evt_{name}_{event}_{number}", call.job.seq, event,
                                                              webhook.url, 0))  # fmt: skip
                    reported = now
                    if not changed.is_set():
                        await changed.wait()
        except JobTrouble as trouble:
            log.warning("the webhook of job %s is not told how it goes on: %s", name, trouble)

    async def _pause(self, call: JobCall, seconds: float) -> bool:
        """Wait until the next event may be sent; False: the job runs no more."""
        until = asyncio.get_running_loop().time() + seconds
        # In short steps: the event about the job's end waits until this returns.
        while self._runs(call) and (left := until - asyncio.get_running_loop().time()) > 0:  # noqa: ASYNC110
            await asyncio.sleep(min(left, 0.1))
        return self._runs(call)

    def _runs(self, call: JobCall) -> bool:
        return self._board.running.get(call.job.id) is call

    async def _tell(self, call: JobCall, event: DueWebhook) -> None:
        state = await self._board.get(call.job.id)
        if state is None or not self._runs(call):
            return
        ends, at = [], 0
        for part in call.parts:
            at += len(part)
            ends.append(at)
        so_far = StoredAnswer(200, call.answer_head, b"".join(call.parts), tuple(ends))
        trace = Webhook.from_text(call.job.webhook).trace if call.job.webhook else ()
        fault, _ = await self._sender.post(event, await self._make_body(state, event.event, so_far), trace)
        self._sender.outcomes["dropped" if fault else "delivered"] += 1
