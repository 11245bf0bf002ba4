"""An agent on a node, without a cluster: strangers do not keep the front out, and nonsense costs one placement."""

from __future__ import annotations

import asyncio
import contextlib
import json
import resource
import secrets
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from panglot.engine.ray.placement import Placement
from panglot_worker.node import handshake

PROGRAM = """
import asyncio, json, sys

from panglot_worker.node.agent import NodeAgent


async def main():
    agent = NodeAgent(bytes.fromhex(sys.argv[1]), (0, 0))
    print(json.dumps(await agent.open("127.0.0.1", "a-node")), flush=True)
    await agent.until_gone()


asyncio.run(main())
"""
STRANGERS = 80


class Cluster:
    """What a placement needs of its cluster."""

    tls: ssl.SSLContext | None = None

    def __init__(self, secret: bytes) -> None:
        self.secret = secret
        self.forgotten = 0

    def forget(self, placement: Placement) -> None:
        self.forgotten += 1

    def release(self, placement: Placement) -> None:
        pass


class Agent:
    """An agent in a process of its own."""

    def __init__(self, secret: bytes, files: int = 0) -> None:
        limit = (lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))) if files else None
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, secret.hex()], stdout=subprocess.PIPE, preexec_fn=limit
        )
        assert self.process.stdout is not None
        self.about: dict[str, Any] = json.loads(self.process.stdout.readline())

    def stranger(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.about["port"]), 10)


@contextlib.contextmanager
def keeping(secret: bytes, files: int = 0) -> Iterator[Agent]:
    agent = Agent(secret, files)
    try:
        yield agent
    finally:
        agent.process.kill()
        agent.process.communicate()


async def opened(secret: bytes, about: dict[str, Any]) -> Placement:
    placement = Placement(Cluster(secret), 1, {})
    await placement.open(about)
    return placement


def reach(agent: Agent, secret: bytes, tries: int) -> None:
    """Have a front take the placement; Ray would not tell it again where the agent is, so few tries are allowed."""

    async def main() -> None:
        for left in reversed(range(tries)):
            placement = await opened(secret, agent.about)
            if placement.ready.exception() is None:
                placement.release()
                return
            await asyncio.sleep(0.5 if left else 0)
        placement.ready.result()

    asyncio.run(main())


def test_silent_strangers_do_not_keep_the_front_out() -> None:
    secret = secrets.token_bytes(32)
    with keeping(secret) as agent, contextlib.ExitStack() as held:
        for _ in range(STRANGERS):
            # Greeted, or turned away already.
            held.enter_context(agent.stranger()).recv(handshake.SIZE)
        reach(agent, secret, tries=1)


def test_strangers_of_one_address_do_not_push_out_those_of_another() -> None:
    """127.0.0.2 is another address of this machine."""
    secret = secrets.token_bytes(32)
    with keeping(secret) as agent, contextlib.ExitStack() as held:
        where = ("127.0.0.1", agent.about["port"])
        first = held.enter_context(socket.create_connection(where, 10, ("127.0.0.2", 0)))
        assert len(first.recv(handshake.SIZE)) == handshake.SIZE
        others = [held.enter_context(agent.stranger()) for _ in range(40)]
        # The oldest of the many is dropped, and whoever came before all of them is not.
        while others[0].recv(4096):
            pass
        first.settimeout(0.2)
        with pytest.raises(TimeoutError):
            first.recv(1)


def test_an_agent_that_has_no_files_left_for_a_while_is_reached_afterwards() -> None:
    secret = secrets.token_bytes(32)
    with keeping(secret, files=24) as agent:
        strangers = [agent.stranger() for _ in range(STRANGERS)]
        with contextlib.suppress(OSError):
            strangers[-1].settimeout(1)
            strangers[-1].recv(1)
        for stranger in strangers:
            stranger.close()
        reach(agent, secret, tries=4)


DEEP = b"[" * 100_000 + b"\n"
ODD = (
    b'{"is": "exit", "code": 0}\n',
    b'{"is": "exit", "generation": 1e400, "code": 0}\n',
    b'{"is": "memory", "generation": 1, "bytes": 1e400}\n',
    b'{"generation": 1}\n',
    b'{"is": "memory", "generation": "one", "bytes": []}\n',
    b"[1]\n",
    b"null\n",
    DEEP,
    b"\xff\xfe\n",
)


class NodeWorker:
    """A worker at a placement, as far as the placement knows it."""

    generation = 1

    def __init__(self) -> None:
        self.lost = asyncio.Event()

    def on_exit(self, code: int | None) -> None: ...

    def on_here(self) -> None: ...

    def on_memory(self, used: int) -> None: ...

    def on_placement_lost(self, why: str) -> None:
        self.lost.set()


@pytest.mark.parametrize("line", ODD, ids=[str(line[:30]) for line in ODD])
def test_an_odd_line_of_an_agent_loses_its_placement(line: bytes) -> None:
    """Its workers are told, so that others are started elsewhere."""

    async def main() -> None:
        secret, loop = secrets.token_bytes(32), asyncio.get_running_loop()
        listener = socket.create_server(("127.0.0.1", 0))
        listener.setblocking(False)

        async def agent() -> None:
            conn, _ = await loop.sock_accept(listener)
            conn.setblocking(False)
            await handshake.receive(conn, await handshake.as_agent(conn, secret))
            await loop.sock_sendall(conn, handshake.message({}))
            await asyncio.sleep(0.1)
            await loop.sock_sendall(conn, line)
            with conn:
                await asyncio.sleep(30)

        keeping = asyncio.ensure_future(agent())
        with listener:
            placement = await opened(secret, {"address": "127.0.0.1", "port": listener.getsockname()[1]})
            placement.ready.result()
            placement.workers[1] = worker = NodeWorker()
            try:
                await asyncio.wait_for(worker.lost.wait(), 10)
                assert placement.is_lost
            finally:
                placement.release()
                keeping.cancel()
                await asyncio.wait({keeping})
                await asyncio.sleep(0)

    asyncio.run(main())


@pytest.mark.parametrize(
    "line", [b'{"do": "ask"}\n', b'{"do": "signal", "generation": 1e400}\n', b'"launch"\n', b"{}\n", DEEP]
)
def test_an_agent_ends_with_a_front_that_talks_nonsense(line: bytes) -> None:
    secret = secrets.token_bytes(32)
    with keeping(secret) as agent:

        async def main() -> None:
            placement = Placement(Cluster(secret), 1, {})
            placement.about = agent.about
            control = await placement.connect({"role": "control"})
            await asyncio.get_running_loop().sock_sendall(control, line)
            with control:
                await asyncio.to_thread(agent.process.wait, 20)

        asyncio.run(main())
        assert agent.process.returncode == 0


@pytest.mark.parametrize("said", [{}, {"role": "data"}, {"role": "output", "generation": 1e400}, {"role": ["control"]}])
def test_a_connection_without_a_sense_is_closed(said: dict[str, Any]) -> None:
    secret = secrets.token_bytes(32)
    with keeping(secret) as agent:

        async def main() -> None:
            placement = Placement(Cluster(secret), 1, {})
            placement.about = agent.about
            with pytest.raises(ConnectionError):
                await asyncio.wait_for(placement.connect({"role": "", **said}), 20)

        asyncio.run(main())
        reach(agent, secret, tries=1)
