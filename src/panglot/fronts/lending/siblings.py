"""The other fronts of this server, as one front knows them."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any

from panglot.fronts.lending.call_lending import CallLending
from panglot.fronts.lending.loans import Loans
from panglot.fronts.lending.sibling import AnswerQuestion, LinkUser, Sibling

PATIENCE = 0.5
"""Seconds that another front has to tell its figures."""


class Siblings:
    """All other fronts that are connected with this one."""

    def __init__(self) -> None:
        self.answer: AnswerQuestion = _no_answer
        """Answers the questions of other fronts; the server sets it."""
        self.users: dict[int, LinkUser] = {}
        """Further users of the links, besides loans and questions, by the kind of their frames; the server sets it."""
        self.on_link_lost: Callable[[int], None] = lambda index: None
        """Called when the present link to a front has ended."""
        self.lendings: dict[int, CallLending] = {}
        """The models of this front that lend and borrow, by their slot."""
        self._all: dict[int, Sibling] = {}
        self._loans: dict[int, Loans] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def meet(self, index: int, sock: socket.socket) -> None:
        """Connect with a front by this socket, and close the link to a front that had its index before."""
        former = self._all.pop(index, None)
        if former is not None:
            # Now: when its link tells of its end, its successor is in its place.
            self._tell_users_of_loss(index)
            former.close()
        sibling = self._all[index] = Sibling(index, self.lendings, self._tell, self._lost, self.users)
        self._loans[index] = sibling.loans
        task = asyncio.get_running_loop().create_task(sibling.connect(sock))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _tell(self, question: dict[str, Any]) -> Any:
        return await self.answer(question)

    def loans(self) -> dict[int, Loans]:
        """The other fronts as lending knows them."""
        return self._loans

    def _lost(self, sibling: Sibling) -> None:
        # Otherwise `meet` has put the front's successor in its place.
        if self._all.get(sibling.index) is sibling:
            del self._all[sibling.index]
            del self._loans[sibling.index]
            self._tell_users_of_loss(sibling.index)
            self.on_link_lost(sibling.index)

    def _tell_users_of_loss(self, index: int) -> None:
        for user in self.users.values():
            user.lost(index)

    async def ask(self, index: int, question: dict[str, Any]) -> Any:
        """The answer of one front; None where it does not answer in time."""
        sibling = self._all.get(index)
        if sibling is None:
            return None
        answer = sibling.ask(question)
        await asyncio.wait({answer}, timeout=PATIENCE)
        if _is_answered(answer):
            return answer.result()
        answer.cancel()
        return None

    async def ask_all(self, question: dict[str, Any]) -> dict[int, Any]:
        """The answers of the other fronts, by their index. A front that does not answer in time is left out."""
        coming = {index: sibling.ask(question) for index, sibling in self._all.items()}
        if coming:
            await asyncio.wait(coming.values(), timeout=PATIENCE)
        answers = {index: answer.result() for index, answer in coming.items() if _is_answered(answer)}
        answers = {index: value for index, value in answers.items() if value is not None}
        for answer in coming.values():
            # For late answers: nobody takes them any more.
            answer.cancel()
        return answers


async def _no_answer(question: dict[str, Any]) -> Any:
    """The answer of a front that has not started yet."""
    return None


def _is_answered(answer: asyncio.Future[Any]) -> bool:
    return answer.done() and not answer.cancelled()
