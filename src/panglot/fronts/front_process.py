"""One front as the parent knows it, and how the forked process becomes this front."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import time
from collections.abc import Callable
from typing import NoReturn

from panglot.fronts.board import Board
from panglot.fronts.channel import Channel
from panglot.fronts.log_relay import FrontLog, LogRelay

PR_SET_PDEATHSIG = 1
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
CANNOT_START = 70
"""The exit code of a front that failed before it could say why."""


class FrontProcess:
    """The front of an index, through all its processes. The parent owns its channel, its log and its pidfd."""

    def __init__(self, index: int, board: Board) -> None:
        self.index = index
        self.row = board.row(index)
        self._board = board
        self.pid = 0
        """0 while there is no process."""
        self.pidfd = -1
        self.began = 0.0
        self.channel: Channel | None = None
        self.log: FrontLog | None = None
        self.loaded = False
        """Whether it has said that its models are loaded."""
        self.failures = 0
        """How often it could not load, since it last could."""
        self.deaths = 0
        """Deaths in a row, each within a moment of the start."""

    def fork(self, relay: LogRelay, become: Callable[[socket.socket], int], inherited: Callable[[], None]) -> None:
        """Start the process. It calls `inherited` to close files that only the parent uses, then `become`.

        Raises OSError where the machine has no process left.
        """
        ours, theirs = Channel.pair()
        log, writes = relay.pipe()
        self._board.clear(self.index)
        parent = os.getpid()
        # Blocked until the child has its own handlers: the inherited handlers write to the parent's socket for signals,
        # and the parent would count one signal twice.
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            pid = os.fork()
        except OSError:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
            log.close()
            os.close(writes)
            ours.close()
            theirs.close()
            raise
        if pid == 0:
            ours.close()
            os.close(log.descriptor)
            _be_front(parent, writes, theirs, become, inherited)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        theirs.close()
        os.close(writes)
        self.pid, self.pidfd, self.began = pid, os.pidfd_open(pid), time.monotonic()
        self.channel, self.log, self.loaded = Channel(ours), log, False

    def wait(self) -> int:
        """The exit code of the process, which has ended; negative: the signal that killed it."""
        _, status = os.waitpid(self.pid, 0)
        self.release()
        return os.waitstatus_to_exitcode(status)

    def release(self) -> None:
        """Close the parent's files of the front."""
        self.pid = 0
        if self.pidfd >= 0:
            os.close(self.pidfd)
            self.pidfd = -1
        if self.log is not None:
            self.log.close()
            self.log = None
        if self.channel is not None:
            self.channel.close()
            self.channel = None
        # Now, and not only before the next fork: nobody may give connections or calls to the dead front.
        self._board.clear(self.index)

    def close_inherited(self) -> None:
        """Close a sibling's descriptors in a process that was forked after it. The board stays as it is."""
        if self.pidfd >= 0:
            os.close(self.pidfd)
        if self.log is not None:
            os.close(self.log.descriptor)
        if self.channel is not None:
            self.channel.close()

    def kill(self) -> None:
        if self.pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)


def _be_front(
    parent: int,
    log: int,
    control: socket.socket,
    become: Callable[[socket.socket], int],
    inherited: Callable[[], None],
) -> NoReturn:
    """Run the front in this process, which was just forked, and end it. The parent's stack is never unwound here."""
    code = CANNOT_START
    try:
        signal.set_wakeup_fd(-1)
        for number in SIGNALS:
            # A terminal and systemd signal every process of the server, but the parent decides what a signal means.
            # Not SIG_IGN, which the programs of workers would inherit; a handler ends when a program is started.
            signal.signal(number, _take_no_notice)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            # The parent died before the line above, so nothing would ever end this process.
            os._exit(code)
        os.dup2(log, 2)
        os.close(log)
        inherited()
        code = become(control)
    finally:
        os._exit(code)


def _take_no_notice(number: int, frame: object) -> None:
    """Ignore a signal: the parent acts on it."""
