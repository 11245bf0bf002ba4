"""Another front of this server, and the link to it."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import socket
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

import orjson

from panglot.engine.workers.link import Link
from panglot.fronts.lending.call_lending import CallLending
from panglot.fronts.lending.loans import KINDS, Loans
from panglot_worker.line import wire

ASK, TOLD, JOBS, PAIRS = 40, 41, 47, 49
"""Frames between fronts, besides the frames of `wire`: a question about figures, and its answer, both JSON with a
number; commands about jobs (`jobs/fronts/passing.py`); and recorded pairs (`serving/fronts/recording.py`)."""
LARGEST_FIGURES = 64 << 20

log = logging.getLogger("panglot")
AnswerQuestion = Callable[[dict[str, Any]], Awaitable[Any]]


class LinkUser(Protocol):
    """Sends frames of one kind to other fronts, and takes the frames that they send."""

    def linked(self, front: int, link: Link) -> None:
        """Use this link to a front from now on. None of its frames has been heard so far."""

    def lost(self, front: int) -> None:
        """Note that a front cannot be reached any more."""

    def heard(self, front: int, payload: memoryview) -> None:
        """Take the payload of a frame. Raises WireError."""


class SiblingLink(Link):
    """Tells a sibling of the connection before the first frame: users answer each frame over the link."""

    def __init__(self, sibling: Sibling) -> None:
        super().__init__(sibling, 0)
        self._sibling = sibling

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._sibling.on_connected()


class Sibling:
    """One other front. Each side closes a link on a frame that makes no sense; then the parent makes a new link."""

    def __init__(
        self,
        index: int,
        lendings: Mapping[int, CallLending],
        answer: AnswerQuestion,
        on_lost: Callable[[Sibling], None],
        users: Mapping[int, LinkUser],
    ) -> None:
        self.index = index
        self.link: Link = SiblingLink(self)
        self.loans = Loans(index, self.link, lendings)
        self._answer = answer
        self._on_lost = on_lost
        self._users = users
        self._is_closed = False
        """Closed by this front, perhaps before the link was connected."""
        self._numbers = itertools.count(1)
        self._questions: dict[int, asyncio.Future[Any]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def connect(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        await asyncio.get_running_loop().create_unix_connection(lambda: self.link, sock=sock)

    def on_connected(self) -> None:
        """Use the link from now on: what is sent over it before is lost."""
        if self._is_closed:
            self.link.close()
            return
        self.loans.paused = False
        for user in self._users.values():
            user.linked(self.index, self.link)

    # Questions

    def ask(self, question: dict[str, Any]) -> asyncio.Future[Any]:
        """The answer of the other front, once it comes. It may never come: the caller limits the wait."""
        number = next(self._numbers)
        answer = self._questions[number] = asyncio.get_running_loop().create_future()
        answer.add_done_callback(lambda _: self._questions.pop(number, None))
        self.link.send([wire.frame(ASK, 0, orjson.dumps({"number": number, "question": question}))])
        return answer

    async def _tell(self, number: int, question: dict[str, Any]) -> None:
        try:
            value = await self._answer(question)
        except Exception:
            # No answer: the other front stops waiting after a while.
            log.exception("a question of front %d could not be answered", self.index)
            return
        self.link.send([wire.frame(TOLD, 0, _packed({"number": number, "answer": value}))])

    # As the owner of a link

    def longest(self, kind: int, count: int) -> int:
        # Bodies and answers were checked against the limits by the front that has them from a client or a worker.
        return wire.MAX_FRAME if kind in KINDS or kind in self._users else LARGEST_FIGURES

    def on_paused(self, paused: bool) -> None:
        self.loans.paused = paused

    def on_frame(self, kind: int, count: int, payload: memoryview) -> None:
        """Take a frame of a loan, a question or an answer. Raises WireError for any other."""
        if kind in KINDS:
            self.loans.on_frame(kind, count, payload)
            return
        if kind in self._users:
            self._users[kind].heard(self.index, payload)
            return
        if kind not in (ASK, TOLD):
            raise wire.WireError(f"a front sent {wire.NAMES.get(kind, kind)}")
        value = wire.json_object(payload)
        if kind == ASK:
            task = asyncio.get_running_loop().create_task(self._tell(value["number"], value["question"]))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            return
        answer = self._questions.get(value["number"])
        # None: the answer came too late, and nobody waits for it.
        if answer is not None and not answer.done():
            answer.set_result(value["answer"])

    def on_lost(self) -> None:
        for answer in list(self._questions.values()):
            answer.cancel()
        # First: calls that come back below must not be lent to this front again.
        self._on_lost(self)
        self.loans.lost()

    def close(self) -> None:
        self._is_closed = True
        self.link.close()


def _packed(answer: dict[str, Any]) -> bytes:
    try:
        return orjson.dumps(answer, default=str)
    except TypeError:
        # Texts of scripts may be no valid Unicode, which only this module can write.
        return json.dumps(answer, default=str).encode()
