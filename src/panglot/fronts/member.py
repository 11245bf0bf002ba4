"""A front among several: its messages from and to the parent, and the connections that the parent gives it."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import ssl
import time
from collections.abc import Callable
from pathlib import Path

from panglot.engine.call import MemoryQuota
from panglot.engine.engine import LocalEngine
from panglot.engine.workers.shares import FrontShare
from panglot.fronts import messages
from panglot.fronts.board import ACCEPTING, BEAT, CLOSED, LOAD, READY, Board
from panglot.fronts.channel import Channel, ChannelClosed, GivenConnection, GivenLink, LostConnection
from panglot.fronts.lending.call_lending import CallLending
from panglot.fronts.lending.siblings import Siblings
from panglot.fronts.limits.member_quota import MemberQuota
from panglot.fronts.messages import Message
from panglot.fronts.models.catalog import Catalog
from panglot.fronts.sleep.front import FrontSleep
from panglot.settings import Settings
from panglot.web.limits.quota import Quota
from panglot.web.listening.acceptor import MakeProtocol, TlsTimeouts, tls_timeouts

log = logging.getLogger("panglot")
EVERY = 0.1
"""Seconds between two beats: a front that misses ten of them counts as silent."""
LOST_EVERY = 60.0
"""Seconds between two lines of the log about connections that have not arrived."""


class Member:
    """One front of a server that has several. All of it runs on the event loop of the front."""

    def __init__(self, index: int, board: Board, channel: Channel, catalog: Catalog) -> None:
        self.index = index
        self._lost_logged = -LOST_EVERY
        self.count = board.fronts
        self.board = board
        self.row = board.row(index)
        self.rows = board.rows()
        self.catalog = catalog
        """The models that this front begins with."""
        self.siblings = Siblings()
        self.share = FrontShare(index, board.fronts)
        self.jobs_folder: Path | None = None
        """A folder in memory for jobs: they outlive the front that stores them, and end with the machine."""
        self.server_ready = False
        """Whether all fronts have loaded. From then on the server answers that it is ready."""
        self.on_ready: Callable[[], None] = lambda: None
        """Says that the server is ready; called in one front, once."""
        self.on_drain: Callable[[], None] = lambda: None
        self.on_force: Callable[[], None] = lambda: None
        self.on_reload: Callable[[str], None] = lambda model: None
        self.on_change: Callable[[Message], None] = lambda message: None
        """Takes the messages of the parent about models that are loaded and unloaded."""
        self.sleeps: dict[int, FrontSleep] = {}
        """The models that may sleep, by slot."""
        self._end = asyncio.Event()
        self._channel = channel
        self._acceptors: list[GivenConnections] = []
        self._beating: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Listen to the parent from now on."""
        self.siblings.on_link_lost = self._report_lost_link
        loop = asyncio.get_running_loop()
        loop.add_reader(self._channel.fileno(), self._hear)
        self._beating = loop.create_task(self._beat())

    def tell(self, message: Message) -> None:
        """Send a message to the parent."""
        self._channel.send(message)
        if not self._channel.flush():
            loop = asyncio.get_running_loop()
            loop.add_writer(self._channel.fileno(), self._flush)

    def tell_at_once(self, message: Message) -> None:
        """Send a message to the parent when the loop has ended."""
        self._channel.send_at_once(message)

    def _flush(self) -> None:
        if self._channel.flush():
            asyncio.get_running_loop().remove_writer(self._channel.fileno())

    async def _beat(self) -> None:
        # The time of this thread alone: a busy thread of the store of jobs does not make the loop busy.
        used, then = time.thread_time(), time.monotonic()
        while True:
            self.row[BEAT] = int(then * 1000)
            for sleep in self.sleeps.values():
                sleep.publish()
            for lending in self.siblings.lendings.values():
                lending.look()
            await asyncio.sleep(EVERY)
            used_now, now = time.thread_time(), time.monotonic()
            self.row[LOAD] = int(1000 * (used_now - used) / (now - then))
            used, then = used_now, now

    def started(self) -> None:
        """Note that this front takes connections."""
        self.row[BEAT] = int(time.monotonic() * 1000)
        self.row[ACCEPTING] = 1
        self.tell(messages.Accepts())

    def lend(self, slot: int, engine: LocalEngine, quota: MemoryQuota) -> None:
        """Let the engine of a model lend calls to other fronts, and run theirs; its slot is the same in all fronts."""
        lending = CallLending(slot, self.index, self.board, engine, self.siblings.loans, quota)
        self.siblings.lendings[slot] = lending
        lending.begin()

    def end_lending(self, engine: LocalEngine) -> int | None:
        """Have an engine lend and borrow no more. Returns its slot; None where it never lent."""
        for slot, lending in self.siblings.lendings.items():
            if lending.engine is engine:
                del self.siblings.lendings[slot]
                lending.end()
                return slot
        return None

    def loaded(self) -> None:
        """Note that the models of this front are loaded."""
        self.row[READY] = 1
        self.tell(messages.Loaded())

    async def drained(self, unanswered: int) -> None:
        """Note that all requests are answered that could be, and wait until the other fronts are done too."""
        self.tell(messages.Drained(unanswered))
        # Until then other fronts may lend it calls: all workers of a model may be here.
        await self._end.wait()

    def acceptor(self, sock: socket.socket) -> GivenConnections:
        """The acceptor of a listening socket. Call it in the order of the parent's sockets: `_hear` uses the index."""
        self._acceptors.append(GivenConnections(self, sock))
        return self._acceptors[-1]

    def quota(self, settings: Settings) -> Quota:
        return MemberQuota(settings, self.row, self.rows)

    def jobs_elsewhere(self, engine: object) -> int:
        """How many jobs other fronts can have of the model of this engine."""
        lendings = self.siblings.lendings.values()
        return sum(lending.jobs_elsewhere() for lending in lendings if lending.engine is engine)

    def count_closed(self) -> None:
        """Count out a connection that the parent gave."""
        self.row[CLOSED] += 1

    def _count_lost(self) -> None:
        """Count out a connection that has not arrived, and log it once a minute at most."""
        self.count_closed()
        now = time.monotonic()
        if now >= self._lost_logged + LOST_EVERY:
            self._lost_logged = now
            log.error(
                "front %d has no file descriptor left for a new connection, which is closed "
                "(fix: raise the limit, ulimit -n, or lower --max-connections)", self.index
            )  # fmt: skip

    def _report_lost_link(self, sibling: int) -> None:
        # Only one of the two fronts reports it. Two reports would bring two links, and each new link ends the old one.
        if self.index < sibling:
            self.tell(messages.LinkLost(sibling))

    def _hear(self) -> None:
        try:
            for message in self._channel.received():
                if isinstance(message, GivenConnection):
                    self._acceptors[message.listener].take(message.sock)
                elif isinstance(message, LostConnection):
                    self._count_lost()
                elif isinstance(message, GivenLink):
                    self.siblings.meet(message.sibling, message.sock)
                else:
                    self._heard(message)
        except (ChannelClosed, ValueError):
            # The parent has died, and the kernel kills this process for it. Should that fail: a front without a parent
            # must not go on.
            log.error("front %d lost its parent", self.index)
            os._exit(1)

    def _heard(self, message: Message) -> None:
        match message:
            case messages.Announce(aloud):
                self.server_ready = True
                if aloud:
                    self.on_ready()
            case messages.Reload(model):
                self.on_reload(model)
            case (
                messages.StageModel() | messages.Switch() | messages.Drop()
                | messages.Unload() | messages.Scale() | messages.Prefer() | messages.Loading() | messages.Changed()
            ):  # fmt: skip
                self.on_change(message)
            case messages.Sleep(slot) | messages.Wake(slot):
                # None: the model has gone meanwhile.
                if slot in self.sleeps:
                    self.sleeps[slot].obey(message)
            case messages.Drain():
                self.row[ACCEPTING] = 0
                self.on_drain()
            case messages.Force():
                self.on_force()
            case messages.End():
                # Also as `Drain` and `Force`: the server may end before this front has loaded, or heard of a drain.
                self._end.set()
                self.on_drain()
                self.on_force()


class GivenConnections:
    """Takes the connections of one address that the parent has accepted. An `Acceptor`."""

    def __init__(self, member: Member, sock: socket.socket) -> None:
        self._member = member
        self._listening = sock
        self._make: MakeProtocol | None = None
        self._tls: ssl.SSLContext | None = None
        self._timeouts = TlsTimeouts(None, None)
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, make: MakeProtocol, tls: ssl.SSLContext | None, settings: Settings) -> None:
        self._make, self._tls, self._timeouts = make, tls, tls_timeouts(tls, settings)
        # The parent listens. With this copy open, the port would stay open when the parent stops.
        self._listening.close()

    def take(self, connection: socket.socket) -> None:
        """Serve a connection from now on."""
        # uvloop makes it non-blocking, and has TCP send at once.
        task = asyncio.get_running_loop().create_task(self._take(connection))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _take(self, connection: socket.socket) -> None:
        assert self._make is not None
        loop = asyncio.get_running_loop()
        try:
            await loop.connect_accepted_socket(
                self._make,
                connection,
                ssl=self._tls,
                ssl_handshake_timeout=self._timeouts.handshake,
                ssl_shutdown_timeout=self._timeouts.shutdown,
            )
        except OSError:
            # The handshake failed. No protocol was connected, and protocols count connections out, so it is done here.
            self._member.count_closed()
            connection.close()

    async def stop(self) -> None:
        """Wait for the handshakes of connections that have come: the parent sends no further ones."""
        if self._tasks:
            await asyncio.wait(self._tasks)

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()
