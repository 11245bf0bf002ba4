"""The links of one front to others, while they are made and replaced."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import uvloop

from panglot.engine.workers.link import Link
from panglot.fronts.lending.sibling import JOBS
from panglot.fronts.lending.siblings import Siblings
from panglot_worker.line import wire


class User:
    """Notes what it is told of the links. Answers every frame with another one, as users do."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.link: Link | None = None

    def linked(self, front: int, link: Link) -> None:
        self.told.append(f"linked {front}")
        self.link = link

    def lost(self, front: int) -> None:
        self.told.append(f"lost {front}")
        self.link = None

    def heard(self, front: int, payload: memoryview) -> None:
        assert self.link is not None
        self.told.append(f"heard {bytes(payload).decode()}")
        self.link.send([wire.frame(JOBS, 0, b"answer")])


def run(test: Callable[[Siblings, User], Coroutine[Any, Any, None]], loops: Callable[[], Any]) -> None:
    async def prepared() -> None:
        siblings, user = Siblings(), User()
        siblings.users[JOBS] = user
        await asyncio.wait_for(test(siblings, user), 20)

    with asyncio.Runner(loop_factory=loops) as runner:
        runner.run(prepared())


async def until(is_true: Callable[[], bool]) -> None:
    while not is_true():
        await asyncio.sleep(0.001)


loops = pytest.mark.parametrize("loops", [uvloop.new_event_loop, asyncio.new_event_loop])


@loops
def test_nothing_is_lent_to_a_front_before_the_link_to_it_is_connected(loops: Callable[[], Any]) -> None:
    async def test(siblings: Siblings, user: User) -> None:
        own, other = socket.socketpair()
        with other:
            siblings.meet(1, own)
            assert siblings.loans()[1].paused
            await until(lambda: user.told == ["linked 1"])
            assert not siblings.loans()[1].paused

    run(test, loops)


@loops
def test_the_loss_of_a_link_is_told_before_the_next_link_to_the_same_front(loops: Callable[[], Any]) -> None:
    """Commands that must not be repeated end with the link that they were sent by."""

    async def test(siblings: Siblings, user: User) -> None:
        lost: list[int] = []
        siblings.on_link_lost = lost.append
        (own, other), (next_own, next_other) = socket.socketpair(), socket.socketpair()
        with other, next_other:
            siblings.meet(1, own)
            await until(lambda: len(user.told) == 1)
            siblings.meet(1, next_own)
            await until(lambda: user.told[-1] == "linked 1" and len(user.told) > 1)
            # The end of the first link.
            other.setblocking(False)
            await until(lambda: has_ended(other))
            assert user.told == ["linked 1", "lost 1", "linked 1"]
            assert not lost, "the present link is not the one that was lost"

    run(test, loops)


@loops
def test_a_link_that_is_replaced_before_it_is_connected_is_closed(loops: Callable[[], Any]) -> None:
    async def test(siblings: Siblings, user: User) -> None:
        (own, other), (next_own, next_other) = socket.socketpair(), socket.socketpair()
        with other, next_other:
            siblings.meet(1, own)
            siblings.meet(1, next_own)
            other.setblocking(False)
            await until(lambda: has_ended(other) and user.link is not None)
            assert user.told.count("linked 1") == 1

    run(test, loops)


def has_ended(sock: socket.socket) -> bool:
    try:
        return sock.recv(1) == b""
    except BlockingIOError:
        return False


@loops
def test_frames_that_came_early_are_heard_once_they_can_be_answered(loops: Callable[[], Any]) -> None:
    async def test(siblings: Siblings, user: User) -> None:
        own, other = socket.socketpair()
        with other:
            other.sendall(b"".join(map(bytes, [wire.frame(JOBS, 0, b"early")])))
            siblings.meet(1, own)
            await until(lambda: len(user.told) == 2)
            assert user.told == ["linked 1", "heard early"]
            other.setblocking(False)
            received = await asyncio.get_running_loop().sock_recv(other, 1000)
            assert received.endswith(b"answer")

    run(test, loops)
