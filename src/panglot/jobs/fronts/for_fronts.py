"""The front that stores jobs answers the commands of other fronts, and tells them which of their jobs have changed."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from panglot.jobs.board import JobBoard
from panglot.jobs.fronts import passing
from panglot.jobs.fronts.adopted import RunsElsewhere
from panglot.jobs.fronts.sending import SendCommand
from panglot.jobs.job import UNAVAILABLE, JobTrouble
from panglot_worker.line import wire

COMMANDS = frozenset(
    {
        "get", "by_key", "answer", "request", "parts", "new_parts", "listed", "counts", "cancel", "purge", "erase",
        "requeue",
    }
)  # fmt: skip
"""Methods of the board that other fronts may call for their result."""
BREATH = 0.02
"""Seconds between two lists of jobs that have changed: progress may come at any rate."""

log = logging.getLogger("panglot.jobs")


class JobsForFronts:
    """Serves the board to the other fronts of the server."""

    def __init__(self, board: JobBoard) -> None:
        self.board = board
        board.on_change = self._changed
        self._runs = RunsElsewhere(board, lambda front, name: self._send(front, 0, "drop", name))
        self._links: dict[int, SendCommand] = {}
        self._watched: dict[int, set[str]] = {}
        """The jobs that clients of a front follow, by the index of the front."""
        self._news: dict[int, set[str]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def linked(self, front: int, send: SendCommand) -> None:
        """Answer a front by this way from now on. The front tells again which jobs it follows."""
        if front in self._links:
            # The way before may be replaced before anybody notes that it is lost.
            self.lost(front)
        self._links[front], self._watched[front] = send, set()

    def lost(self, front: int) -> None:
        self._links.pop(front, None)
        self._watched.pop(front, None)
        self._runs.lost(front)

    def heard(self, front: int, payload: memoryview) -> None:
        """Do the command of a front. Raises WireError."""
        number, command, value = passing.read(payload)
        if command == "watch":
            self._watched.setdefault(front, set()).add(value)
        elif command == "unwatch":
            self._watched.setdefault(front, set()).discard(value)
        elif command == "shorten":
            self.board.shorten(*value)
        elif command == "submit":
            self.board.submit(value[0], lambda result: self._tell(front, number, result))
        elif command == "adopt":
            self._runs.adopt(front, lambda result: self._tell(front, number, result), *value)
        elif command == "report":
            self._runs.report(*value)
        elif command == "over":
            self._runs.over(*value)
        elif command in COMMANDS:
            task = asyncio.get_running_loop().create_task(self._do(front, number, command, value))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        else:
            raise wire.WireError(f"a front sent the command {command}")

    async def _do(self, front: int, number: int, command: str, arguments: tuple[Any, ...]) -> None:
        try:
            result = await getattr(self.board, command)(*arguments)
        except JobTrouble as trouble:
            result = trouble
        except Exception:
            log.exception("the command %s of front %d failed", command, front)
            result = JobTrouble(UNAVAILABLE, "the server itself failed on a job")
        self._tell(front, number, result)

    def _tell(self, front: int, number: int, result: Any) -> None:
        self._send(front, number, "", result)

    def _send(self, front: int, number: int, command: str, value: Any) -> None:
        send = self._links.get(front)
        # None: the front has died, and nobody waits for the result.
        if send is not None:
            send(number, command, value)

    # Changes

    def _changed(self, name: str) -> None:
        for front, watched in self._watched.items():
            if name in watched:
                self._news.setdefault(front, set()).add(name)
        if self._news and self._timer is None:
            self._tell_changes()

    def _tell_changes(self) -> None:
        news, self._news, self._timer = self._news, {}, None
        for front, names in news.items():
            self._send(front, 0, "changed", list(names))
        # The first change is told at once, further changes together. After a pause without news the timer ends.
        if news:
            self._timer = asyncio.get_running_loop().call_later(BREATH, self._tell_changes)
