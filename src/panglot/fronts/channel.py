"""The socket between the parent and one front. Messages go both ways, connections from the parent to the front."""

from __future__ import annotations

import contextlib
import socket
import sys
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from panglot.fronts.messages import Meet, Message, decoded, encoded

LARGEST = 1 << 19
"""Bytes of the longest message: a traceback has at most 64 KiB, and JSON may make it six times as long."""
AT_ONCE = 16
"""Messages and connections that are received in one go; then the rest of the process has its turn."""
FILE_BYTES = 4
SPACE = socket.CMSG_SPACE(FILE_BYTES)
"""Bytes of one file descriptor that travels with a message, and of the space that it takes."""
GIVE = socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL


class GivenConnection(NamedTuple):
    """A connection that the parent has accepted."""

    listener: int
    """The index of the listening socket that it came by."""
    sock: socket.socket


class LostConnection(NamedTuple):
    """A connection that the kernel has closed on its way, because the front had no file descriptor left for it."""

    listener: int


class GivenLink(NamedTuple):
    """A socket to another front."""

    sibling: int
    sock: socket.socket


Received = Message | GivenConnection | LostConnection | GivenLink


class ChannelClosed(Exception):
    """The other side has closed its end, or has died."""


class Channel:
    """One end. Nothing here waits: messages that the other side does not take yet are sent by a later `flush`."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            # A packet goes whole or not at all: the longest message must fit into the empty buffer.
            with contextlib.suppress(OSError):
                sock.setsockopt(socket.SOL_SOCKET, option, 2 * LARGEST)
        self.sock = sock
        self._buffer = memoryview(bytearray(LARGEST))
        self._unsent: deque[tuple[bytes, socket.socket | None]] = deque()

    @classmethod
    def pair(cls) -> tuple[socket.socket, socket.socket]:
        """Two connected sockets. Packets keep their borders, so that each connection travels with a byte of its own."""
        return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)

    def send(self, message: Message) -> None:
        self._unsent.append((encoded(message), None))
        self.flush()

    def introduce(self, sibling: int, link: socket.socket) -> None:
        """Send a socket to another front, and close it here."""
        self._unsent.append((encoded(Meet(sibling)), link))
        self.flush()

    def send_at_once(self, message: Message) -> None:
        """Send a message, and wait until it is sent: the last message of a process."""
        self.sock.setblocking(True)
        self.send(message)

    def flush(self) -> bool:
        """Send the messages that wait; True when none waits any more."""
        while self._unsent:
            data, link = self._unsent[0]
            try:
                socket.send_fds(self.sock, [data], [link.fileno()] if link is not None else [], socket.MSG_NOSIGNAL)
            except (BlockingIOError, InterruptedError):
                return False
            except OSError:
                # The other side is gone. The parent learns of a death by the pidfd, a front by reading.
                self._discard()
                return True
            self._unsent.popleft()
            if link is not None:
                # The packet holds the file open until it is received.
                link.close()
        return True

    def give(self, listener: int, connection: socket.socket) -> bool:
        """Pass a connection on; False when the other side has too many unread packets, or is gone."""
        if self._unsent:
            # A connection never overtakes a message: after `Drain` a front expects no further connection.
            return False
        file = connection.fileno().to_bytes(FILE_BYTES, sys.byteorder)
        try:
            # Not by `socket.send_fds`, which costs twice as much: a parent does nothing else as often.
            self.sock.sendmsg((bytes((listener,)),), ((socket.SOL_SOCKET, socket.SCM_RIGHTS, file),), GIVE)
        except OSError:
            return False
        return True

    def _discard(self) -> None:
        for _, link in self._unsent:
            if link is not None:
                link.close()
        self._unsent.clear()

    def received(self) -> Iterator[Received]:
        """What has come. Raises ChannelClosed at the end of the stream, ValueError for a packet that is no message."""
        for _ in range(AT_ONCE):
            try:
                count, ancillary, _, _ = self.sock.recvmsg_into((self._buffer,), SPACE, socket.MSG_CMSG_CLOEXEC)
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                raise ChannelClosed from error
            if not count:
                raise ChannelClosed
            sock = _received_socket(ancillary[0][2]) if ancillary else None
            if count == 1:
                # One byte is always a connection: messages are longer.
                listener = self._buffer[0]
                yield LostConnection(listener) if sock is None else GivenConnection(listener, sock)
                continue
            data = bytes(self._buffer[:count])
            message = decoded(data)
            if isinstance(message, Meet) and sock is not None:
                yield GivenLink(message.sibling, sock)
            else:
                yield message

    def close(self) -> None:
        self._discard()
        with contextlib.suppress(OSError):
            self.sock.close()

    def fileno(self) -> int:
        return self.sock.fileno()


def _received_socket(file: bytes) -> socket.socket:
    # The type is given, so that only the family is asked of the kernel: every socket that travels is a stream.
    return socket.socket(-1, socket.SOCK_STREAM, 0, fileno=int.from_bytes(file[:FILE_BYTES], sys.byteorder))
