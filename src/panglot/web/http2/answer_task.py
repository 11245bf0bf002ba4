"""Answers that need a task: calls with many messages, and answers that take long."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from panglot.web.grpc.statuses import DEADLINE_EXCEEDED, INTERNAL, RpcError

if TYPE_CHECKING:
    from panglot.web.http2.stream import CallStream

log = logging.getLogger("panglot.web")
BLUNDER = "the server itself failed on this call; its log says why"
LATE = "the deadline of the call has passed"


class AnswerTask:
    """The task that answers a call, until it is done, its client disconnects, or its deadline passes."""

    def __init__(self, stream: CallStream, work: Coroutine[Any, Any, bytes | None]) -> None:
        self.stream = stream
        self._work: Coroutine[Any, Any, bytes | None] | None = work
        """The coroutine, until the task has begun: only a task that has begun closes it."""
        loop = asyncio.get_running_loop()
        seconds = stream.head.seconds
        self._timer = loop.call_later(seconds, self._expire) if seconds is not None else None
        self._task = loop.create_task(self._run(work))

    async def _run(self, work: Coroutine[Any, Any, bytes | None]) -> None:
        self._work = None
        stream, calls = self.stream, self.stream.calls
        try:
            answer = await work
            if not stream.is_open:
                return
            if answer is not None:
                calls.answered(stream, answer)
            else:
                calls.complete(stream)
        except RpcError as error:
            calls.refuse(stream, error.code, error.message)
        except Exception:
            log.exception("the server itself failed on a call of %s", stream.head.path[:200])
            calls.refuse(stream, INTERNAL, BLUNDER)

    def _expire(self) -> None:
        self.stream.calls.refuse(self.stream, DEADLINE_EXCEEDED, LATE)

    def cancel(self) -> None:
        """Stop the work of a call that is over. Where the task itself calls this, it runs on to its end."""
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not asyncio.current_task():
            self._task.cancel()
        # A task that is cancelled before its first step never awaits `work`, and Python would warn of it.
        if self._work is not None:
            self._work.close()
