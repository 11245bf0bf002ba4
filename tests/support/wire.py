"""One connection under a test's full control, and the answers that come back on it."""

from __future__ import annotations

import contextlib
import re
import socket
import ssl
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from support.server import Server

HEAD_END = b"\r\n\r\n"
SIP = 65536
STATUS_LINE = re.compile(r"HTTP/1\.1 (\d{3}) .*")


@dataclass(frozen=True)
class Reply:
    """One answer, as it was written."""

    status: int
    headers: dict[str, str]
    body: bytes


class Wire:
    """A client that sends bytes and reads answers when it is told to, never by itself.

    Whatever its `receive_buffer`, the kernel takes up to 5 MB for it: a smaller answer never waits in the server.
    """

    def __init__(
        self, server: Server, *, tls: ssl.SSLContext | None = None, receive_buffer: int = 0, patience: float = 15
    ) -> None:
        self.patience = patience
        plain = socket.socket()
        plain.settimeout(patience)
        if receive_buffer:
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        plain.connect(("127.0.0.1", server.port))
        self.port: int = plain.getsockname()[1]
        self.socket = tls.wrap_socket(plain, server_hostname="localhost") if tls else plain
        self.data = bytearray()
        self.closed = False

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    def send(self, *pieces: bytes, pause: float = 0.0) -> None:
        """Send, as far as the server still listens."""
        with contextlib.suppress(OSError):
            for piece in pieces:
                self.socket.sendall(piece)
                time.sleep(pause)

    def read(self, seconds: float | None = None) -> bytes:
        """What comes next; nothing when that takes too long or the server has closed."""
        self.socket.settimeout(self.patience if seconds is None else seconds)
        try:
            part = self.socket.recv(1 << 20)
        except TimeoutError:
            return b""
        except OSError:
            part = b""
        self.closed = not part
        self.data += part
        return part

    def read_slowly(self, seconds: float) -> None:
        """Read a little now and then, for so long. Fails when the server closes."""
        self.socket.settimeout(self.patience)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            part = self.socket.recv(SIP)
            assert part, "the server has closed"
            self.data += part
            time.sleep(0.1)

    def reply(self) -> Reply:
        """The next answer, interim ones too. Fails when there is none in time."""
        while (found := take(self.data)) is None:
            assert self.read(), f"no whole answer ({'closed' if self.closed else 'silence'}): {self.data[:500]!r}"
        reply, size = found
        del self.data[:size]
        return reply

    def replies(self, count: int) -> list[Reply]:
        return [self.reply() for _ in range(count)]

    def wait_closed(self, seconds: float = 15) -> bool:
        """Read on until the server closes; whether it did."""
        deadline = time.monotonic() + seconds
        while not self.closed and (left := deadline - time.monotonic()) > 0:
            self.read(left)
        return self.closed

    def is_silent(self, seconds: float = 0.3) -> bool:
        """Nothing comes, and the connection stays open."""
        return not self.read(seconds) and not self.closed


def take(data: bytes | bytearray) -> tuple[Reply, int] | None:
    """The first whole answer in the data and its length; None when there is none."""
    start = data.find(HEAD_END) + len(HEAD_END)
    if start < len(HEAD_END):
        return None
    line, *fields = bytes(data[:start]).decode("latin-1").split("\r\n")
    found = STATUS_LINE.fullmatch(line)
    assert found, f"not an answer: {bytes(data[:200])!r}"
    pairs = (entry.partition(":") for entry in fields if entry)
    headers: dict[str, str] = {}
    for name, _, value in pairs:
        known = headers.get(name.lower())
        headers[name.lower()] = value.strip() if known is None else f"{known}, {value.strip()}"
    if headers.get("transfer-encoding") == "chunked":
        body, end = _chunked(data, start)
    else:
        end = start + int(headers.get("content-length", 0))
        body = bytes(data[start:end]) if end <= len(data) else None
    return (Reply(int(found[1]), headers, body), end) if body is not None else None


def _chunked(data: bytes | bytearray, at: int) -> tuple[bytes | None, int]:
    pieces = []
    while (line := data.find(b"\r\n", at)) >= 0:
        size = int(bytes(data[at:line]), 16)
        at = line + 2 + size + 2
        if at > len(data):
            break
        pieces.append(bytes(data[line + 2 : at - 2]))
        if not size:
            return b"".join(pieces), at
    return None, at


def unsent(server: Server, wire: Wire) -> tuple[int, int]:
    """Bytes the kernel holds between server and client: not yet acknowledged, and not yet read."""
    queues = {}
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, remote, _, queue, *_ = line.split()
        ports = tuple(int(address.partition(":")[2], 16) for address in (local, remote))
        queues[ports] = tuple(int(size, 16) for size in queue.split(":"))
    return queues.get((server.port, wire.port), (0, 0))[0], queues.get((wire.port, server.port), (0, 0))[1]


def is_open(server: Server, wire: Wire) -> bool:
    """Whether the server still holds its end of the connection."""
    return any(connection.raddr and connection.raddr[1] == wire.port for connection in _connections(server))


def accepted(server: Server) -> int:
    """How many connections the server has taken from its listening sockets."""
    return sum(socket.status == psutil.CONN_ESTABLISHED for socket in _connections(server))


def _connections(server: Server) -> list[Any]:
    """The sockets of the process that speaks HTTP, or of all that do."""
    processes = server.fronts() or [psutil.Process(server.process.pid)]
    return [socket for process in processes for socket in process.net_connections("tcp")]
