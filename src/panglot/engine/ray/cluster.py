"""The Ray driver beside the front, and the placements it has found. One for each server."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import logging
import os
import secrets
import sys
from collections import deque
from typing import Any

from panglot.engine.processes import process
from panglot.engine.ray import certificate, paths
from panglot.engine.ray.needs import as_text
from panglot.engine.ray.placement import Placement
from panglot.engine.ray.reach import HEAD, check_reach
from panglot.errors import StartError
from panglot.settings import Settings
from panglot.terminal.text import counted
from panglot_worker.life import loader
from panglot_worker.line import encryption

log = logging.getLogger("panglot.ray")
DRIVER = loader.code("panglot_worker.node.driver", "main")
CONNECT = (30.0, 30.0, 100.0)
"""Seconds that a driver may take to connect to the cluster, one attempt after the other.

Ray's client hangs for good where the process that the cluster starts for it fails, so one long attempt is not enough.
"""
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 5.0
"""Seconds before a driver that ended is started again."""
LINE = 1 << 20
WORDS = 30
MOST_LINES = 8
"""Lines of a reason that are all shown."""


class Cluster:
    """Finds placements for workers. The driver may end, and is started again; placements go on without it."""

    def __init__(self, settings: Settings) -> None:
        self.address = settings.ray
        self.python = settings.ray_python or sys.executable
        self.ports = settings.agent_ports or (0, 0)
        self.secret = secrets.token_bytes(32)
        self.certificate = certificate.make() if settings.ray_tls else ""
        self.tls = encryption.context(self.certificate, is_node=False) if self.certificate else None
        self.server = secrets.token_hex(6)
        self.placements: dict[int, Placement] = {}
        self.folders: dict[str, str] = {}
        """The folders that were sent: by their path on nodes, the path here."""
        self.outage = ""
        """Why no placement can be had now; empty while the cluster is there."""
        self.version = ""
        self.nodes = 0
        self.has_token = False
        """The cluster as the driver found it when it connected."""
        self._numbers = itertools.count(1)
        self._process: asyncio.subprocess.Process | None = None
        self._running: asyncio.Task[None] | None = None
        self._connected: asyncio.Future[None] | None = None
        self._words: deque[str] = deque(maxlen=WORDS)
        """The last lines that the driver has written, for the error when it ends."""
        self._complained = False
        self._unanswered = 0
        """Attempts to connect that the cluster has not answered, one after the other."""
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def pid(self) -> int:
        """The process of the driver; 0 where there is none."""
        return self._process.pid if self._process is not None else 0

    async def start(self) -> None:
        """Connect to the cluster, unless that is done or under way. Raises StartError."""
        if self._connected is None:
            self._connected = asyncio.get_running_loop().create_future()
            self._running = asyncio.get_running_loop().create_task(self._run())
        # Several models wait for the one connection: cancelling one of them must not cancel it for the others.
        await asyncio.shield(self._connected)

    async def close(self) -> None:
        """End all placements and the driver."""
        # First: it would start another driver.
        if self._running is not None:
            self._running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._running
        for placement in list(self.placements.values()):
            placement.release()
        await self._end_driver()

    # Placements

    def ask(self, needs: dict[str, float]) -> Placement:
        """A placement for one worker; it is ready once the cluster has found one."""
        placement = Placement(self, next(self._numbers), needs)
        self.placements[placement.number] = placement
        self._ask(placement)
        return placement

    def _ask(self, placement: Placement) -> None:
        self._say({"do": "start_agent", "id": placement.number, "needs": placement.needs})

    def forget(self, placement: Placement) -> None:
        self.placements.pop(placement.number, None)

    def release(self, placement: Placement) -> None:
        self._say({"do": "release", "id": placement.number})

    def _say(self, value: dict[str, Any]) -> None:
        # Nothing is lost in an outage: `_on_connected` repeats what is wanted, and an agent that is released ends with
        # its control connection. A driver that has just died closes its pipe before `_listen` notices the end.
        driver = self._process.stdin if self._process is not None else None
        if driver is not None and not driver.is_closing() and not self.outage:
            driver.write(json.dumps(value).encode() + b"\n")

    def at_home(self, text: str) -> str:
        """A traceback from a node, with the paths that its files have here."""
        return paths.at_home(text, self.folders)

    # The driver

    async def _run(self) -> None:
        """Keep a driver running. The first that cannot connect ends the server; later ones are tried again."""
        pause = FIRST_PAUSE
        while True:
            self.outage = self.outage or "the driver is connecting to the cluster"
            try:
                await check_reach(self.address)
                await self._start_driver()
                if await self._listen():
                    pause = FIRST_PAUSE
                    log.error("the driver of Ray ended: it is started again, and the workers go on")
                else:
                    self._fail(StartError(f"the driver of Ray ended at once: {' '.join(self._words)[-500:]}", fix=HEAD))
            except TimeoutError:
                self._on_silence()
            except StartError as error:
                self._fail(error)
            except ValueError as error:
                # A driver that was killed leaves half a line.
                self._fail(StartError(f"the driver of Ray sent what is no message: {error}", fix=HEAD))
            except OSError as error:
                self._fail(StartError(f"--ray-python {self.python} cannot be started: {error.strerror or error}"))
            await self._end_driver()
            self.outage = "the Ray cluster cannot be reached"
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _on_silence(self) -> None:
        """Count an attempt to connect that was not answered; after the last one, that is an error."""
        waited = CONNECT[: self._unanswered + 1]
        self._unanswered += 1
        if self._unanswered < len(CONNECT):
            log.warning("--ray %s: no answer within %g s; the driver is started again", self.address, waited[-1])
            return
        self._unanswered = 0
        self._fail(StartError(f"--ray {self.address}: the cluster did not answer within {sum(waited):g} s", fix=HEAD))

    async def _start_driver(self) -> None:
        """Start the process, and say how to connect. Raises OSError."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PANGLOT_")}
        self._process = await asyncio.create_subprocess_exec(
            self.python, "-u", "-c", DRIVER, process.worker_folder(),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            env=environment, limit=LINE, start_new_session=True,
        )  # fmt: skip
        assert self._process.stdin is not None
        first = {
            "address": self.address, "secret": self.secret.hex(), "certificate": self.certificate, "ports": self.ports,
            "server": self.server,
        }  # fmt: skip
        self._process.stdin.write(json.dumps(first).encode() + b"\n")
        self._retain(self._read_words(self._process))

    async def _end_driver(self) -> None:
        driver, self._process = self._process, None
        if driver is not None:
            with contextlib.suppress(ProcessLookupError):
                driver.kill()
            await driver.wait()

    def _retain(self, coroutine: Any) -> None:
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _read_words(self, driver: asyncio.subprocess.Process) -> None:
        assert driver.stderr is not None
        ended = False
        while not ended:
            # A line that is too long is left out. The driver would block if nobody read on.
            with contextlib.suppress(ValueError):
                line = await driver.stderr.readline()
                ended = not line
                if line:
                    self._words.append(line.decode("utf-8", "replace").rstrip())
                    log.debug("ray: %s", self._words[-1])

    async def _listen(self) -> bool:
        """Take the driver's messages until it ends. Whether it had connected. Raises StartError and TimeoutError."""
        driver, connected = self._process, False
        assert driver is not None
        assert driver.stdout is not None
        while line := await self._line(driver.stdout, None if connected else CONNECT[self._unanswered]):
            said = json.loads(line)
            if said["is"] == "connected":
                connected = True
                self._on_connected(said)
            elif said["is"] == "failed":
                raise refusal(self.address, self.python, said)
            else:
                self._hear(said)
        return connected

    @staticmethod
    async def _line(stream: asyncio.StreamReader, seconds: float | None) -> bytes:
        async with asyncio.timeout(seconds):
            return await stream.readline()

    def _on_connected(self, said: dict[str, Any]) -> None:
        """Note that the cluster is there, and ask for all placements that are not found yet."""
        # First: `_say` says nothing during an outage.
        self.outage, self._complained, self._unanswered = "", False, 0
        self.version, self.nodes, self.has_token = said["ray"], len(said["nodes"]), bool(said["token"])
        log.info("connected to Ray %s at %s, %s", said["ray"], self.address, counted(len(said["nodes"]), "node"))
        if self._connected is not None and not self._connected.done():
            if not said["token"]:
                log.warning("the Ray cluster has no token authentication: whoever reaches it can run code on its nodes "
                            "(RAY_AUTH_MODE=token, where it is started and here)")  # fmt: skip
            if self.tls is not None:
                log.info("the connections to the nodes are encrypted")
            log.info("large bodies and answers travel by sockets too: no memory can be shared with nodes")
            self._connected.set_result(None)
        for placement in list(self.placements.values()):
            # A placement with `about` has an agent already, which goes on without a driver.
            if not placement.about:
                self._ask(placement)

    def _hear(self, said: dict[str, Any]) -> None:
        placement = self.placements.get(said["id"])
        # It was released or lost, and this message crossed the news on its way.
        if placement is None:
            return
        if said["is"] == "agent_started":
            self._retain(placement.open(said))
        elif said["is"] == "waiting":
            log.warning(
                "no node has %s free; waiting. The cluster has %s", as_text(placement.needs), shown(said["nodes"])
            )
        elif not placement.ready.done():
            why = first_line(said["why"])
            # With `about` it had an agent, which has died since. By a ConnectionError the launcher knows that the
            # machine was lost, and the worker is started at another placement.
            placement.lose(why, error=ConnectionError(why) if placement.about else None)
        else:
            # Ray may be mistaken, as when it loses sight of the node. The end of the control connection decides.
            log.debug("%s, says Ray: %s", placement, first_line(said["why"]))

    def _fail(self, error: StartError) -> None:
        """End the start by an error. A server that runs logs it, once in each outage."""
        if self._connected is not None and not self._connected.done():
            self._connected.set_exception(error)
        elif not self._complained:
            self._complained = True
            log.error("%s; it is tried again until it can be reached", error.problem)


def first_line(text: str) -> str:
    return text.strip().splitlines()[0] if text.strip() else "no reason was given"


def shown(nodes: list[dict[str, Any]]) -> str:
    """The nodes of a cluster by their addresses, with the resources that workers may need."""
    hidden = ("node:", "object_store_memory", "memory", "accelerator_type:")
    lines = []
    for node in nodes:
        resources = {name: amount for name, amount in node["resources"].items() if not name.startswith(hidden)}
        lines.append(f"{node['address']} ({', '.join(f'{name} {amount:g}' for name, amount in resources.items())})")
    return ", ".join(lines) or "no node"


def refusal(address: str, python: str, said: dict[str, Any]) -> StartError:
    """Why the driver could not connect, with what to do about it."""
    if said["kind"] == "ModuleNotFoundError":
        fix = "pip install 'panglot[ray]', or --ray-python of an interpreter that has the cluster's Ray"
        return StartError(f"--ray: {python} has no Ray ({first_line(said['why'])})", fix=fix)
    versions = "--ray-python of an interpreter with the cluster's versions of Python and Ray"
    fixes = {
        "RuntimeError": versions,
        # Ray's client raises this when its server refuses it.
        "ConnectionAbortedError": f"{versions}; where those are the same, the logs of its head say more",
        "ConnectionError": "is it the address of a head, such as HOST:6379 or ray://HOST:10001? Where the cluster has "
        "a token: RAY_AUTH_MODE=token, and the token in RAY_AUTH_TOKEN or RAY_AUTH_TOKEN_PATH",
        "AuthenticationError": "RAY_AUTH_MODE=token, and the cluster's token in RAY_AUTH_TOKEN or RAY_AUTH_TOKEN_PATH",
    }
    return StartError(f"--ray {address}: {in_a_line(said['why'])}", fix=fixes.get(said["kind"], ""))


def in_a_line(why: str) -> str:
    """A reason in one line; of a traceback the first and the last line."""
    lines = [line.strip() for line in why.splitlines() if line.strip()]
    return " ".join(lines if len(lines) <= MOST_LINES else [lines[0], "...", lines[-1]])[:600]
