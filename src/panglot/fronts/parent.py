"""The process above several fronts. It forks them, replaces a front that dies, and turns signals into messages."""

from __future__ import annotations

import logging
import os
import selectors
import signal
import socket
from collections.abc import Callable, Sequence
from functools import partial

from panglot.errors import FrontsEnded, LoadError, PanglotError, Unanswered
from panglot.fronts import messages
from panglot.fronts.accepting import Accepting
from panglot.fronts.board import LOST_LINES, RESTARTS, Board
from panglot.fronts.channel import Channel, ChannelClosed, GivenConnection, GivenLink, LostConnection
from panglot.fronts.front_process import SIGNALS, FrontProcess
from panglot.fronts.hung_fronts import HungFronts
from panglot.fronts.log_relay import LogRelay
from panglot.fronts.messages import Message
from panglot.fronts.models.catalog import Catalog
from panglot.fronts.models.changing import Changes
from panglot.fronts.reloading import Reloading
from panglot.fronts.sleep.parent import Sleeps
from panglot.fronts.timers import Timers
from panglot.settings import Settings
from panglot.terminal.text import counted

log = logging.getLogger("panglot")
STEADY = 1.0
"""Seconds that a front must live for its death to begin a new count."""
MOST_DEATHS = 5
"""Deaths in a row, each within a moment of the start, after which the server ends."""
LAST_SECONDS = 10.0
"""Seconds beyond the drain time after which a front that has not ended is killed."""

BecomeFront = Callable[[int, Board, Channel], int]
"""Runs a front in a process that was forked for it, given its index; returns the exit code of the process."""


class Parent:
    """Owns the fronts and the listening sockets. It has one thread and one selector, and only the selector waits."""

    def __init__(
        self,
        settings: Settings,
        board: Board,
        sockets: Sequence[socket.socket],
        become: BecomeFront,
        catalog: Catalog | None = None,
    ) -> None:
        self.settings = settings
        self.become = become
        self.board = board
        self.fronts = [FrontProcess(index, board) for index in range(board.fronts)]
        self.selector = selectors.DefaultSelector()
        self.timers = Timers()
        self.relay = LogRelay(2, settings.log_queue, self.selector)
        self.accepting = Accepting(sockets, self.fronts, self.selector, self.timers)
        self.reloading = Reloading(self.fronts)
        self.changes = Changes(self.fronts, catalog or Catalog((), 0), self.tell)
        self.sleeps = Sleeps(self.fronts, board.sleep, settings, self.tell, self.timers, lambda: self._draining)
        self.on_accepting: Callable[[], None] = lambda: None
        """Called once, when the first front takes connections."""
        self.announced = False
        """Whether the server has said that it is ready."""
        self.signals = 0
        self.stopping: dict[int, int] = {}
        """By front: the requests that it had to answer when it began to drain."""
        self.drained: dict[int, int] = {}
        """By front: the requests that it did not answer."""
        self.error: PanglotError | None = None
        self._private: tuple[socket.socket, ...] = ()
        self._has_accepted = False
        self._draining = False
        self._ended = False

    def run(self) -> None:
        """Serve until a signal. Raises LoadError before the first ready, Unanswered when the drain time passes."""
        self._listen_to_signals()
        HungFronts(self.fronts, self.timers).look()
        try:
            # The others follow when the first has loaded: a script that cannot load fails once, and downloads once.
            self._fork(self.fronts[0])
            while any(front.pid for front in self.fronts) or not self._draining:
                for key, events in self.selector.select(self.timers.wait()):
                    key.data(events)
                self.timers.run()
                self.fronts[0].row[LOST_LINES] = self.relay.dropped
        finally:
            for front in self.fronts:
                front.kill()
        if self.error is not None:
            raise self.error
        if sum(self.drained.values()):
            raise Unanswered(sum(self.drained.values()))

    # Fronts

    def _fork(self, front: FrontProcess) -> None:
        if self._draining or front.pid:
            return
        try:
            front.fork(self.relay, partial(self._become, front.index), self._close_private)
        except OSError as error:
            log.error("front %d could not be started, and is tried again: %s", front.index, error.strerror)
            self._fork_later(front, self.settings.restart_delay_max)
            return
        assert front.channel is not None
        assert front.log is not None
        self.selector.register(front.pidfd, selectors.EVENT_READ, lambda events: self._died(front))
        self.selector.register(front.log.descriptor, selectors.EVENT_READ, lambda events: self._log(front))
        self.selector.register(front.channel, selectors.EVENT_READ, partial(self._hear, front))
        self._introduce(front)

    def _introduce(self, front: FrontProcess) -> None:
        """Connect a front that was just forked with every other front."""
        for other in self.fronts:
            if other is not front:
                self._connect(front, other)

    def _connect(self, front: FrontProcess, other: FrontProcess) -> None:
        """Give two fronts a link between them, if both are there."""
        if front.channel is not None and other.channel is not None:
            ends = socket.socketpair()
            front.channel.introduce(other.index, ends[0])
            other.channel.introduce(front.index, ends[1])
            self._flush(front)
            self._flush(other)

    def _become(self, index: int, control: socket.socket) -> int:
        return self.become(index, self.board, Channel(control))

    def _close_private(self) -> None:
        """In a process that was just forked: close all files that only the parent uses."""
        self.selector.close()
        for sock in self._private:
            sock.close()
        self.accepting.close_inherited()
        for other in self.fronts:
            other.close_inherited()

    def _log(self, front: FrontProcess) -> None:
        if front.log is not None and not front.log.read():
            self.selector.unregister(front.log.descriptor)

    def _died(self, front: FrontProcess) -> None:
        """Note that a front has ended, and replace it unless the server stops."""
        assert front.channel is not None
        assert front.log is not None
        # Its last messages are read before its channel is closed: why it could not load, what it did not answer.
        self._hear(front, selectors.EVENT_READ)
        lived = self.timers.now() - front.began
        # Before `wait` closes these files: the next front's files may get their numbers, which the selector then knows.
        for file in (front.pidfd, front.channel, front.log.descriptor):
            if file in self.selector.get_map():
                self.selector.unregister(file)
        code = front.wait()
        self.accepting.look()
        self.reloading.ended(front.index)
        self.changes.front_ended(front.index)
        self.sleeps.front_ended(front.index)
        if self._draining:
            if front.index not in self.drained:
                # Silent about a front that could not load: it has said why, and the server ends for that reason.
                if self.error is None:
                    log.error("front %d ended while it drained (%s)", front.index, _manner(code))
                self.drained[front.index] = 0
            self._end_if_drained()
            return
        self._replace(front, code, lived)

    def _replace(self, front: FrontProcess, code: int, lived: float) -> None:
        """Fork a front that has ended again, after a pause. A front that keeps dying ends the server."""
        settings = self.settings
        if front.failures:
            # It has said why. Like a worker that cannot load it is tried again and again; the other fronts serve.
            pause = min(settings.restart_delay * 2.0**front.failures, settings.restart_delay_max)
        else:
            front.deaths = front.deaths + 1 if lived < STEADY else 1
            if front.deaths >= MOST_DEATHS:
                self._give_up(FrontsEnded(f"front {front.index} ended {MOST_DEATHS} times right after its start"))
                return
            log.error("front %d ended (%s): another one starts, its connections are lost", front.index, _manner(code))
            pause = settings.restart_delay
            front.row[RESTARTS] += 1
        self._fork_later(front, pause)

    def _fork_later(self, front: FrontProcess, pause: float) -> None:
        self.timers.after(pause, partial(self.changes.fork_when_still, partial(self._fork, front)))

    def _give_up(self, error: PanglotError) -> None:
        self.error = self.error or error
        self._draining = True
        self._end()

    # What fronts say

    def _hear(self, front: FrontProcess, events: int) -> None:
        if front.channel is None:
            return
        if events & selectors.EVENT_WRITE:
            self._flush(front)
        try:
            for message in front.channel.received():
                # `received` reads for both sides. Only the parent sends files.
                if isinstance(message, GivenConnection | LostConnection | GivenLink):
                    raise ValueError("a front gives nothing away")
                self._heard(front, message)
        except (ChannelClosed, ValueError) as error:
            # The front is about to die, and its pidfd tells it. Until then its channel would wake this loop endlessly.
            if front.channel in self.selector.get_map():
                self.selector.unregister(front.channel)
            if isinstance(error, ValueError):
                # The parent kills a front whose messages it cannot read: its successor begins with a clean channel.
                log.error("front %d: %s", front.index, error)
                front.kill()

    def _heard(self, front: FrontProcess, message: Message) -> None:
        match message:
            case messages.Accepts():
                if not self._has_accepted:
                    self._has_accepted = True
                    self.on_accepting()
                self.accepting.look()
            case messages.Loaded():
                self._loaded(front)
            case messages.Failed():
                self._failed(front, message)
            case messages.ReloadWanted(model):
                self._reload(model)
            case messages.LinkLost(sibling):
                self._connect(front, self.fronts[sibling])
            case messages.Reloaded():
                self.reloading.ended(front.index)
            case messages.Stopping(unanswered):
                self.stopping[front.index] = unanswered
                if len(self.stopping) == sum(bool(front.pid) for front in self.fronts):
                    log.info("stopping; %s to finish", counted(sum(self.stopping.values()), "request"))
            case messages.Drained(unanswered):
                self.drained[front.index] = unanswered
                self._end_if_drained()
            case _:
                self.changes.heard(front, message)
                self.sleeps.heard(front, message)

    def _loaded(self, front: FrontProcess) -> None:
        front.loaded, front.failures, self.changes.catalog.is_loaded = True, 0, True
        # Only fronts that never began: a front that has died comes back by its timer.
        for other in self.fronts:
            if not other.pid and not other.began:
                self._fork(other)
        if self.announced:
            self.tell(front, messages.Announce(aloud=False))
        self._announce_if_complete()
        self.changes.front_loaded()

    def _failed(self, front: FrontProcess, failed: messages.Failed) -> None:
        error = LoadError(
            failed.problem, file=failed.file, line=failed.line, fix=failed.fix, traceback=failed.traceback
        )
        if front.index == 0 and not self.announced:
            self._give_up(error)
            return
        front.failures += 1
        log.error("front %d could not load: %s", front.index, error.sentence(), extra={"traceback": error.traceback})
        self._announce_if_complete()

    def _announce_if_complete(self) -> None:
        """Make the server ready once every front has loaded, or has failed to. If the first fails, the server ends."""
        if not self.announced and all(front.loaded or front.failures for front in self.fronts):
            self.announced = True
            for front in self.fronts:
                self.tell(front, messages.Announce(aloud=front.index == 0))

    # What fronts are told

    def tell(self, front: FrontProcess, message: Message) -> None:
        """Send a message now, or once the front reads again."""
        if front.channel is not None:
            front.channel.send(message)
            self._flush(front)

    def _flush(self, front: FrontProcess) -> None:
        assert front.channel is not None
        sent = front.channel.flush()
        if front.channel in self.selector.get_map():
            events = selectors.EVENT_READ if sent else selectors.EVENT_READ | selectors.EVENT_WRITE
            self.selector.modify(front.channel, events, partial(self._hear, front))

    def _listen_to_signals(self) -> None:
        reads, writes = self._private = socket.socketpair()
        for sock in self._private:
            sock.setblocking(False)
        signal.set_wakeup_fd(writes.fileno(), warn_on_full_buffer=False)
        for number in SIGNALS:
            # Only so that the signal does not end the process: the byte in the socket tells of it.
            signal.signal(number, lambda number, frame: None)
        self.selector.register(reads, selectors.EVENT_READ, lambda events: self._signalled(reads.recv(64)))

    def _signalled(self, numbers: bytes) -> None:
        for number in numbers:
            # A terminal sends SIGHUP when it is closed. Without a terminal somebody asks for a reload.
            if number == signal.SIGHUP and not os.isatty(0):
                log.info("SIGHUP: every front loads its models again, one front after the other")
                self._reload()
            elif number in SIGNALS:
                self._stop()

    def _reload(self, model: str = "") -> None:
        if not self._draining:
            self.reloading.begin(self.tell, model)

    def _stop(self) -> None:
        """Begin to drain; the second time, end at once."""
        self.signals += 1
        if self.signals > 1:
            for front in self.fronts:
                self.tell(front, messages.Force())
            return
        # Connections first: `Drain` travels behind them, so that a front knows that no further one comes.
        self.accepting.end()
        self._draining = True
        self.changes.stop()
        for front in self.fronts:
            self.tell(front, messages.Drain())
        self.timers.after(self.settings.drain + LAST_SECONDS, self._kill)

    def _end_if_drained(self) -> None:
        if all(front.index in self.drained for front in self.fronts if front.pid):
            self._end()

    def _end(self) -> None:
        if not self._ended:
            self._ended = True
            for front in self.fronts:
                self.tell(front, messages.End())
            self.timers.after(LAST_SECONDS, self._kill)

    def _kill(self) -> None:
        for front in self.fronts:
            if front.pid:
                log.error("front %d does not end, and is killed", front.index)
                front.kill()


def _manner(code: int) -> str:
    """How a process ended, in words."""
    return f"signal {-code}" if code < 0 else f"exit code {code}"
