"""A worker on a node, as the front knows it."""

from __future__ import annotations

import asyncio
import signal
import ssl
from typing import Any

from panglot.engine.processes import process
from panglot.engine.processes.output import ScriptOutput
from panglot.engine.ray import paths
from panglot.engine.ray.placement import Placement
from panglot.engine.workers.worker import HUNG, KILL_AFTER, KILLED, LINGER, LOST, Worker
from panglot_worker.line import wire

DOUBT = 0.1
"""Seconds until the agent is asked whether it is still there, after a worker was killed from outside: the whole node
may be going."""
UNHEARD = 5.0
"""Seconds after which a worker is lost when its socket was closed and its agent says nothing."""


class NodeWorker(Worker):
    """Its process is a child of an agent on some node; its socket leads there."""

    placement: Placement | None = None
    memory_used = 0
    folders: dict[str, str] = {}
    """The folders that were sent: by their path there, the path here."""
    code: int | None = None
    installing = False
    """Whether its environment is being made, for which there is no time limit."""

    @property
    def pid(self) -> int:
        return int(self.info.get("pid", 0))

    @property
    def child(self) -> int:
        return 0

    @property
    def node(self) -> str:
        return self.placement.node if self.placement is not None else ""

    @property
    def returncode(self) -> int | None:
        return self.code

    def memory(self) -> int:
        return self.memory_used

    def lives(self) -> bool:
        return not (self._exited or self._link_lost)

    async def start_at(self, launch: dict[str, Any], hello: dict[str, Any], output: ScriptOutput) -> None:
        """Start the process at its placement and say hello. Raises OSError or ValueError."""
        assert self.placement is not None
        loop = asyncio.get_running_loop()
        self.output = output
        data = await self.placement.start(self.generation, launch, output)
        try:
            await loop.create_connection(lambda: self.link, sock=data, **self.placement.encryption)
        except OSError:
            # The process has ended before it could agree on keys: its agent says how.
            loop.call_soon(self.on_lost)
            return
        self._greet(hello)

    def _tell_event(self, value: dict[str, Any]) -> None:
        super()._tell_event(
            {name: self.at_home(text) if isinstance(text, str) else text for name, text in value.items()}
        )

    def at_home(self, text: str) -> str:
        return paths.at_home(text, self.folders)

    # Ending

    def interrupt(self) -> None:
        if self.placement is not None and not self._exited:
            self.placement.signal(self.generation, wire.INTERRUPT)

    def kill_hung(self, why: str, reason: str = HUNG) -> None:
        """End a worker that hangs: abort first, for the stack traces it writes, then for good."""
        # A worker that waits for a placement, or for its environment, does not hang.
        if (
            self.placement is None
            or self._exited
            or not self.placement.ready.done()
            or self.installing
            or self.reason in KILLED
        ):
            return
        self.reason, self.why = reason, why
        self.placement.signal(self.generation, signal.SIGABRT)
        self.placement.signal(self.generation, signal.SIGCONT)
        asyncio.get_running_loop().call_later(KILL_AFTER, self.kill)

    def kill(self) -> None:
        """Have the agent kill the process group; give back a placement that is not ready yet."""
        if self.placement is None or self._exited:
            return
        if self.placement.ready.done():
            self.placement.signal(self.generation, signal.SIGKILL)
        else:
            # The wait for the placement then fails in `launch`, and `Supervisor._start` reports the death.
            self.placement.release()

    def on_exit(self, code: int | None) -> None:
        """Note that the process has ended. If something else killed it, its whole node may be going: ask the agent."""
        self.code = code
        if process.ended_itself(code) or self.reason in KILLED or self.placement is None:
            self.on_here()
        else:
            asyncio.get_running_loop().call_later(DOUBT, self.placement.ask, self.generation)

    def on_here(self) -> None:
        """Take the end of the process as its own death, since its placement is still there."""
        if self._exited:
            return
        self._exited = True
        self.stream_pause.close()
        if self._link_lost:
            self._dead()
        else:
            asyncio.get_running_loop().call_later(LINGER, self.link.close)

    def on_memory(self, used: int) -> None:
        self.memory_used = used

    def on_placement_lost(self, why: str) -> None:
        """Note that the process is out of reach, whether it has ended or not."""
        if self._exited and self._link_lost:
            return
        self.reason, self.why, self._exited = LOST, f"was lost with its placement: {why}", True
        if self._link_lost:
            self._dead()
        else:
            self.link.close()

    def on_lost(self) -> None:
        """Note that the socket is closed. Where the machine is out of reach, its agent is not waited for."""
        error = self.link.error
        if isinstance(error, OSError) and not isinstance(error, ConnectionError | ssl.SSLError):
            # Before `super`: the worker becomes LOST, so that its death is judged as that of a machine.
            self._unheard(f"its node cannot be reached ({error.strerror or error})")
        super().on_lost()
        if not self._exited:
            asyncio.get_running_loop().call_later(UNHEARD, self._unheard, "its agent does not answer")

    def _unheard(self, why: str) -> None:
        if not self._exited and self.placement is not None:
            self.placement.lose(why)
