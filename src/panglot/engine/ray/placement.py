"""A placement: an agent on some node, and with it a reserved share of that node."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from typing import TYPE_CHECKING, Any

import panglot_worker.node.handshake as handshake
from panglot.engine.processes.output import ScriptOutput
from panglot.terminal.text import brief

if TYPE_CHECKING:
    from panglot.engine.ray.cluster import Cluster
    from panglot.engine.ray.node_worker import NodeWorker

log = logging.getLogger("panglot.ray")
CONNECT = 5.0
"""Seconds that a connection to an agent may take, and each answer of its handshake."""
STATES = WAITING, FREE, USED = ("waiting", "free", "used")
NEWS = 5.0
"""Seconds within which Ray tells of an agent that has died."""
ANSWER = 60.0
"""Seconds that an agent may take to start a worker."""


class PlacementLost(OSError):
    """A placement that cannot be had, or has gone."""

    def __init__(self, why: str, fix: str = "") -> None:
        super().__init__(why)
        self.fix = fix


class Placement:
    """One agent, from the wish for it to its end."""

    def __init__(self, cluster: Cluster, number: int, needs: dict[str, float]) -> None:
        self.cluster = cluster
        self.number = number
        self.needs = needs
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # Looks at the exception, so that asyncio does not report it where nobody waits for this placement.
        self.ready.add_done_callback(lambda future: future.cancelled() or future.exception())
        self.about: dict[str, Any] = {}
        self.workers: dict[int, NodeWorker] = {}
        self.code = ""
        """The folder of our own code there, once it has been sent."""
        self.pythons: dict[str, str] = {}
        """Interpreters of environments that were made there, by what was requested."""
        self.is_lost = False
        self._control: asyncio.StreamWriter | None = None
        self._listening: asyncio.Task[None] | None = None

    def __str__(self) -> str:
        return f"placement {self.number}" + (f" on node {self.node}" if self.about else "")

    @property
    def node(self) -> str:
        """The address of its node."""
        return str(self.about.get("address", ""))

    @property
    def state(self) -> str:
        """The state of a placement that is not lost."""
        if not self.ready.done():
            return WAITING
        return USED if self.workers else FREE

    # Beginning

    async def open(self, about: dict[str, Any]) -> None:
        """Open the control connection to the agent that was placed, or be lost."""
        # First: a driver that reconnects meanwhile must not be asked for a second agent.
        self.about = about
        try:
            sock = await self.connect({"role": "control"})
            reader, self._control = await asyncio.open_connection(sock=sock, **self.encryption)
        except (OSError, ValueError) as error:
            # An agent that has just died refuses connections too. Ray knows it soon, and then another is placed.
            if isinstance(error, ConnectionError) and await self._is_lost_soon():
                return
            where = f"{about['address']}:{about['port']}"
            what = "no answer" if isinstance(error, TimeoutError) else error
            self.lose(
                f"its agent at {where} cannot be reached from here ({what})",
                "let this machine connect to the nodes; --agent-ports A-B says which ports",
            )
            return
        if self.is_lost:
            # Released while it was connecting: nobody would close this connection later.
            self._close()
            return
        self._listening = asyncio.get_running_loop().create_task(self._listen(reader))
        log.info("%s (%s) is ours: agent pid %s", self, about.get("host", "?"), about.get("pid", "?"))
        if not self.ready.done():
            self.ready.set_result(None)

    async def _is_lost_soon(self) -> bool:
        """Whether news of the agent's end comes within a moment."""
        for _ in range(round(NEWS / 0.1)):
            if self.is_lost:
                break
            await asyncio.sleep(0.1)
        return self.is_lost

    async def connect(self, said: dict[str, Any]) -> socket.socket:
        """A connection to the agent, proven on both sides, for the use that `said` names. Raises OSError, ValueError.

        Nothing is encrypted yet, so nothing of a package or a request may be in `said`.
        """
        loop = asyncio.get_running_loop()
        address = str(self.about["address"])
        sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
        try:
            sock.setblocking(False)
            handshake.tune(sock)
            async with asyncio.timeout(CONNECT):
                await loop.sock_connect(sock, (address, int(self.about["port"])))
            async with asyncio.timeout(CONNECT):
                key = await handshake.as_front(sock, self.cluster.secret)
            await loop.sock_sendall(sock, handshake.message(said, key))
            if said["role"] != "files":
                async with asyncio.timeout(ANSWER):
                    answer = await handshake.receive(sock)
                if "problem" in answer:
                    raise PlacementLost(str(answer["problem"]))
        except BaseException:
            sock.close()
            raise
        return sock

    async def start(self, generation: int, launch: dict[str, Any], output: ScriptOutput) -> socket.socket:
        """Start a process there. Returns the connection that it alone has. Raises OSError or ValueError."""
        # In this order: the agent starts the process once it has `launch` and the data connection, and needs the output
        # by then. `launch` goes by the control connection, because the messages of `connect` are not encrypted.
        printed = await self.connect({"role": "output", "generation": generation})
        await asyncio.get_running_loop().create_connection(lambda: output, sock=printed, **self.encryption)
        self.say("launch", generation, launch=launch)
        return await self.connect({"role": "data", "generation": generation})

    @property
    def encryption(self) -> dict[str, Any]:
        """The arguments for the event loop to encrypt a connection; none where nothing is encrypted."""
        if self.cluster.tls is None:
            return {}
        return {"ssl": self.cluster.tls, "server_hostname": "", "ssl_handshake_timeout": ANSWER}

    # What the agent says

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        """Take the agent's messages until it goes, or breaks the protocol. Then the placement is lost in any case."""
        why = "the connection to its agent ended"
        try:
            while line := await reader.readline():
                self._hear(handshake.heard(line))
        except OSError:
            pass
        except ValueError as error:
            why = f"its agent does not make sense: {brief(str(error), 200)}"
        except Exception:
            log.exception("%s: the server itself failed on what its agent said", self)
            why = "the server failed on what its agent said"
        self.lose(why)

    def _hear(self, said: dict[str, Any]) -> None:
        """Pass a message of the agent to the worker that it is about. Raises ValueError for an unknown message."""
        worker = self.workers.get(handshake.number(said, "generation"))
        event = said.get("is")
        if event == "exit":
            code = handshake.number(said, "code")
            if worker is not None:
                worker.on_exit(code)
        elif event == "memory":
            used = handshake.number(said, "bytes")
            if worker is not None:
                worker.on_memory(used)
        elif event != "here":
            raise ValueError("a message of no known kind")
        elif worker is not None:
            worker.on_here()

    def say(self, do: str, generation: int, **more: Any) -> None:
        """Have the agent do something with one of its workers: signal it, or launch it once it has a connection."""
        if self._control is not None:
            self._control.write(json.dumps({"do": do, "generation": generation, **more}).encode() + b"\n")

    def signal(self, generation: int, number: int) -> None:
        self.say("signal", generation, number=number)

    def ask(self, generation: int) -> None:
        """Ask the agent whether it is there, for one of its workers."""
        self.say("ask", generation)

    # Ending

    def lose(self, why: str, fix: str = "", error: OSError | None = None) -> None:
        """Note that the placement has gone, and tell its workers. Only the first reason counts.

        Code that waits for the placement gets `error`, or PlacementLost, which ends the start of a server.
        """
        if self.is_lost:
            return
        # First: the deaths of its workers reach the launcher, which must not store this placement as free.
        self.is_lost = True
        if self.ready.done():
            log.warning("%s was lost: %s", self, why)
        else:
            self.ready.set_exception(error or PlacementLost(why, fix))
        self._close()
        for worker in list(self.workers.values()):
            worker.on_placement_lost(why)
        self.workers.clear()

    def release(self) -> None:
        """Give the placement back. The agent ends when its control connection does."""
        if not self.is_lost:
            self.is_lost = True
            if not self.ready.done():
                self.ready.set_exception(PlacementLost("the placement is not wanted any more"))
            self.cluster.release(self)
            self._close()

    def _close(self) -> None:
        self.cluster.forget(self)
        # `_listen` itself calls `lose`, and a task must not cancel itself.
        if self._listening is not None and self._listening is not asyncio.current_task():
            self._listening.cancel()
        if self._control is not None:
            # Not `close`, which sends the rest first: nobody needs the rest, and the agent must notice at once.
            self._control.transport.abort()
            self._control = None
