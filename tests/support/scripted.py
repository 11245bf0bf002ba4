"""A server on a socket that answers every path with bytes a test wrote down, and counts who comes."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator

Answer = bytes | Callable[[socket.socket], None]


class Scripted:
    """`answers` maps paths to bytes, or to what is done with the connection; unknown ones get 404."""

    def __init__(self, answers: dict[str, Answer], address: str = "127.0.0.1", port: int = 0) -> None:
        self.answers = answers
        self.seen = 0
        self.requests: list[bytes] = []
        self.context: ssl.SSLContext | None = None
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.socket = socket.create_server((address, port), family=family, backlog=64)
        self.port = int(self.socket.getsockname()[1])
        self.host = f"[{address}]:{self.port}" if ":" in address else f"{address}:{self.port}"
        threading.Thread(target=self._accept, daemon=True).start()

    def url(self, path: str) -> str:
        return f"http://{self.host}{path}"

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.socket.accept()
                self.seen += 1
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection:
            if self.context is None:
                self._answer(connection)
                return
            with self.context.wrap_socket(connection, server_side=True) as encrypted:
                self._answer(encrypted)

    def _answer(self, connection: socket.socket) -> None:
        request = b""
        while b"\r\n\r\n" not in request:
            piece = connection.recv(65536)
            if not piece:
                return
            request += piece
        self.requests.append(request)
        answer = self.answers.get(request.split(b" ")[1].decode(), simple(b"nothing here", "404 Not Found"))
        if callable(answer):
            answer(connection)
        else:
            connection.sendall(answer)

    def close(self) -> None:
        self.socket.close()


@contextlib.contextmanager
def scripted(answers: dict[str, Answer], address: str = "127.0.0.1", port: int = 0) -> Iterator[Scripted]:
    server = Scripted(answers, address, port)
    try:
        yield server
    finally:
        server.close()


def simple(body: bytes, status: str = "200 OK", *lines: str) -> bytes:
    head = "".join(f"{line}\r\n" for line in (f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *lines))
    return head.encode() + b"\r\n" + body


def redirect(location: str, status: int = 302) -> bytes:
    return simple(b"", f"{status} Found", f"Location: {location}")


def endless(connection: socket.socket) -> None:
    """A body without an end, as fast as it is taken."""
    connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        connection.sendall(b"x" * 65536)


def dripping(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
    while True:
        connection.sendall(b"x")
        time.sleep(0.1)


def silent(connection: socket.socket) -> None:
    time.sleep(60)
