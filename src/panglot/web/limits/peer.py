"""What the kernel knows of the machine at the other end: whether it is still there, and how much has arrived.

Where a transport has no socket any more, it is None here: TLS lets go of it a moment before the connection is told so.
"""

from __future__ import annotations

import contextlib
import fcntl
import math
import socket
import struct
import termios
from typing import Any

TCP_USER_TIMEOUT = 18
SIOCOUTQ = 0x5411
BYTES_ACKNOWLEDGED = struct.Struct("120xQ")
"""Where `tcpi_bytes_acked` lies in the kernel's `struct tcp_info`."""
PROBES = 4
TCP_CLOSE = 7


def notice_silence(listener: socket.socket, seconds: float) -> None:
    """Have the kernel end connections whose peer acknowledges nothing for `seconds`; accepted ones inherit it.

    A peer with nothing to acknowledge is probed. The kernel counts one that is there but reads nothing as silent too.
    """
    every = max(1, math.ceil(seconds / PROBES))
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, every)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, every)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, PROBES)
    listener.setsockopt(socket.IPPROTO_TCP, TCP_USER_TIMEOUT, math.ceil(seconds * 1000))


def unacknowledged(sock: Any) -> int:
    """Bytes that were sent, or wait in the kernel to be, and that the peer has not received."""
    if sock is None:
        return 0
    (count,) = struct.unpack("i", fcntl.ioctl(sock.fileno(), SIOCOUTQ, bytes(4)))
    return int(count)


def acknowledged(sock: Any) -> int:
    """Bytes that have reached the peer since the connection began."""
    if sock is None:
        return 0
    if sock.family == socket.AF_UNIX:
        # The kernel counts no delivered bytes here. This number changes when the peer reads, and callers only compare
        # it.
        return -unacknowledged(sock)
    (count,) = BYTES_ACKNOWLEDGED.unpack(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, BYTES_ACKNOWLEDGED.size))
    return int(count)


def unread(sock: Any) -> int:
    """Bytes that came from the peer and that we have not read from the kernel yet."""
    if sock is None:
        return 0
    (count,) = struct.unpack("i", fcntl.ioctl(sock.fileno(), termios.FIONREAD, bytes(4)))
    return int(count)


def send_end_with_bytes(sock: Any) -> None:
    """Have the end of our stream, which follows at once, travel in one packet with the last bytes that wait.

    A client that saw the bytes first would often close before we do. Then the pause that TCP demands after a connection
    would keep a port of the client's, of which it has few.
    """
    if sock is not None and sock.family != socket.AF_UNIX:
        # It may be reset already.
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)


def has_reset(sock: Any) -> bool:
    """Whether the peer has reset the connection. While we do not read, only the kernel knows."""
    with contextlib.suppress(OSError):
        # The first byte of `tcp_info` is the state of the connection.
        return sock is not None and bool(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == TCP_CLOSE)
    return False
