"""Bytes to a server's socket, and all that comes back."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Iterable
from dataclasses import dataclass

from support.server import Server

STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) ")
GOODBYE = b"GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX-Request-Id: goodbye\r\n\r\n"


@dataclass(frozen=True)
class Heard:
    """What a server answered to raw bytes, and whether it closed the connection on its own."""

    data: bytes
    closed: bool

    @property
    def statuses(self) -> list[int]:
        """Of all answers, in order; interim ones too."""
        return [int(found) for found in STATUS.findall(self.data)]

    @property
    def status(self) -> int:
        return self.statuses[0] if self.statuses else 0


def talk(server: Server, sent: bytes | Iterable[bytes], *, seconds: float = 30, pause: float = 0.0) -> Heard:
    """Send bytes, piece by piece, then listen until the server closes the connection.

    If its answer does not say that it will, it is asked to by one more request, whose answer is left out.
    """
    pieces = [sent] if isinstance(sent, bytes) else sent
    data, closed = b"", False
    with socket.create_connection(("127.0.0.1", server.port), timeout=seconds) as connection:
        try:
            for piece in pieces:
                connection.sendall(piece)
                if pause:
                    time.sleep(pause)
        except OSError:
            pass
        try:
            data = connection.recv(1 << 20)
            if b"connection: close" not in data.lower():
                connection.sendall(GOODBYE)
            while part := connection.recv(1 << 20):
                data += part
            closed = True
        except TimeoutError:
            pass
        except OSError:
            closed = True
    answer, goodbye = without_goodbye(data)
    return Heard(answer, closed and not goodbye)


def without_goodbye(data: bytes) -> tuple[bytes, bool]:
    """What was heard before the answer to the last request, and whether that was answered."""
    start = data.rfind(b"HTTP/1.1 ")
    if b"x-request-id: goodbye\r\n" in data[start:]:
        return data[:start], True
    return data, False


def post(body: bytes = b"1", *lines: str, path: str = "/predict", host: str = "Host: localhost") -> bytes:
    """A POST with a correct head, unless the given lines spoil it."""
    head = [f"POST {path} HTTP/1.1", *([host] if host else []), "Content-Type: application/json"]
    if not any(line.lower().startswith(("content-length", "transfer-encoding")) for line in lines):
        head.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*head, *lines, "", ""]).encode("latin-1") + body
