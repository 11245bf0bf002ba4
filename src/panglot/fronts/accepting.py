"""Accepting in the parent: every connection goes to the front with the fewest."""

from __future__ import annotations

import contextlib
import ctypes
import logging
import selectors
import socket
import struct
import time
from collections.abc import Sequence

from panglot.fronts.board import GIVEN
from panglot.fronts.front_process import FrontProcess
from panglot.fronts.spreading import by_preference
from panglot.fronts.timers import Timers
from panglot.web.listening.stop_accepting import DROP_ALL, SO_ATTACH_FILTER

AT_ONCE = 64
"""Connections that are accepted before signals and deaths are looked at."""
PAUSE = 0.005
"""Seconds until a connection is offered again, after no front could take it."""
NO_FILES = 0.1
"""Seconds without accepting after the process had no descriptor left."""

log = logging.getLogger("panglot")


class Accepting:
    """Owns the listening sockets of a server with several fronts."""

    def __init__(
        self,
        sockets: Sequence[socket.socket],
        fronts: Sequence[FrontProcess],
        selector: selectors.BaseSelector,
        timers: Timers,
    ) -> None:
        self._sockets = list(sockets)
        self._fronts = fronts
        self._rows = [front.row for front in fronts]
        self._selector = selector
        self._timers = timers
        self._listens = False
        self._ended = self._pausing = False
        self._waiting: tuple[int, socket.socket] | None = None
        """A connection that no front could take yet. No further connection is accepted before it is given away."""

    def look(self) -> None:
        """Accept connections while a front takes them. Otherwise they wait in the kernel."""
        takes = bool(by_preference(self._rows, _now_ms())) and self._waiting is None
        takes = takes and not self._ended and not self._pausing
        if takes == self._listens:
            return
        self._listens = takes
        for index, sock in enumerate(self._sockets):
            if takes:
                self._selector.register(sock, selectors.EVENT_READ, lambda events, index=index: self._accept(index))
            else:
                self._selector.unregister(sock)

    def _accept(self, listener: int) -> int:
        """Accept some of the connections that wait, and give them away; returns how many these were."""
        for count in range(AT_ONCE):
            if self._waiting is not None:
                return count
            try:
                connection, _ = self._sockets[listener].accept()
            except (BlockingIOError, ConnectionAbortedError, InterruptedError):
                return count
            except OSError as error:
                self._pause(error)
                return count
            if not self._give(listener, connection):
                self._waiting = listener, connection
                self.look()
                self._timers.after(PAUSE, self._give_waiting)
        return AT_ONCE

    def _give(self, listener: int, connection: socket.socket) -> bool:
        for index in by_preference(self._rows, _now_ms()):
            front = self._fronts[index]
            # Counted first: the front may have closed the connection, and counted it out, before `give` returns.
            front.row[GIVEN] += 1
            if front.channel is not None and front.channel.give(listener, connection):
                # This closes the parent's copy. The packet, and then the front, hold the connection open.
                connection.close()
                return True
            front.row[GIVEN] -= 1
        return False

    def _give_waiting(self) -> None:
        if self._waiting is not None:
            if not self._give(*self._waiting):
                self._timers.after(PAUSE, self._give_waiting)
                return
            self._waiting = None
        self.look()

    def _pause(self, error: OSError) -> None:
        """Accept nothing for a moment: the process has no descriptor left, and the loop would turn without end."""
        log.error("no connection can be accepted: %s", error.strerror or error)
        self._pausing = True
        self.look()
        self._timers.after(NO_FILES, self._resume)

    def _resume(self) -> None:
        self._pausing = False
        self.look()

    def end(self) -> None:
        """Refuse new connections, and give away the connections that the kernel has accepted already."""
        # First: the filter drops new handshakes, so that the loop below comes to an end. A closed socket would reset
        # the connections that wait in it.
        for sock in self._sockets:
            with contextlib.suppress(OSError):
                program = ctypes.create_string_buffer(DROP_ALL)
                sock.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("HP", 1, ctypes.addressof(program)))
        if self._waiting is not None:
            self._give_waiting()
        for index in range(len(self._sockets)):
            while self._accept(index) == AT_ONCE:
                pass
        self._ended = True
        self.look()
        if self._waiting is not None:
            # No front can take it. Its timer finds none any more.
            self._waiting[1].close()
            self._waiting = None
        for sock in self._sockets:
            sock.close()

    def close_inherited(self) -> None:
        """In a process that was just forked: close the connection that waits. `GivenConnections` closes the sockets."""
        if self._waiting is not None:
            self._waiting[1].close()


def _now_ms() -> int:
    return int(time.monotonic() * 1000)
