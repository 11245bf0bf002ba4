"""An HTTP server that behaves as live sources do, and counts who connects."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence

STALL = "stall"
Part = bytes | float | str
"""Bytes to send, seconds to wait, or STALL: nothing more, and the connection stays."""
Script = Callable[[int, str, bytes], Sequence[Part]]
"""From the number of the connection, the path and the request's head to all that is sent."""

LIVE = b"HTTP/1.1 200 OK\r\nContent-Type: video/mp2t\r\n\r\n"
"""Without a length: it ends when the connection does."""


def whole(body: bytes, more: str = "") -> bytes:
    return f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n{more}\r\n".encode() + body


def ranged(body: bytes, head: bytes) -> bytes:
    """As servers of files do that send any part of them."""
    asked = re.search(rb"(?i)^range: bytes=(\d+)-", head, re.MULTILINE)
    if asked is None:
        return whole(body, "Accept-Ranges: bytes\r\n")
    start = int(asked[1])
    about = f"Content-Range: bytes {start}-{len(body) - 1}/{len(body)}\r\nAccept-Ranges: bytes\r\n"
    return whole(body[start:], about).replace(b"200 OK", b"206 Partial Content", 1)


class LiveServer:
    def __init__(self, script: Script) -> None:
        self.script = script
        self.connections = 0
        self.paths: list[str] = []
        self.closing = threading.Event()
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def url(self, path: str = "/live.ts") -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def close(self) -> None:
        self.closing.set()
        # Closing alone would leave it listening, since a thread waits in accept.
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()

    def __enter__(self) -> LiveServer:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self.socket.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(client, self.connections), daemon=True).start()

    def _serve(self, client: socket.socket, number: int) -> None:
        with client:
            head = b""
            while b"\r\n\r\n" not in head:
                data = client.recv(65536)
                if not data:
                    return
                head += data
            path = head.split(b" ", 2)[1].decode()
            self.paths.append(path)
            try:
                for part in self.script(number, path, head):
                    if part == STALL:
                        self.closing.wait(60)
                    elif isinstance(part, float):
                        time.sleep(part)
                    elif isinstance(part, bytes):
                        client.sendall(part)
            except OSError:
                pass


def pieces(body: bytes, count: int, pause: float) -> Iterator[Part]:
    """The body in so many pieces, with pauses between."""
    size = -(-len(body) // count)
    for start in range(0, len(body), size):
        yield body[start : start + size]
        yield pause
