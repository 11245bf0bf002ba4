"""A service of raw bytes: each connection is given to a function, so that a test decides about every byte and pause."""

from __future__ import annotations

import contextlib
import re
import signal
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from support.server import ROOT

Behaviour = Callable[[socket.socket], None]


class Upstream:
    """Listens on a port of 127.0.0.1. `behaviour` may be changed between connections."""

    def __init__(self, behaviour: Behaviour, tls: ssl.SSLContext | None = None) -> None:
        self.behaviour = behaviour
        self.connections = 0
        self._tls = tls
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock: socket.socket) -> None:
        sock.settimeout(30)
        with contextlib.suppress(OSError), sock:
            wrapped = self._tls.wrap_socket(sock, server_side=True) if self._tls else sock
            with wrapped:
                self.behaviour(wrapped)

    def close(self) -> None:
        # A thread that waits in accept does not notice that its socket was closed.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


def reading_request(sock: socket.socket) -> tuple[bytes, bytes]:
    """One request with a Content-Length or none: its head and its body."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = sock.recv(65536)
        if not piece:
            return data, b""
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    found = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
    while found and len(body) < int(found[1]):
        piece = sock.recv(65536)
        if not piece:
            break
        body += piece
    return head, body


def received(sock: socket.socket) -> bytes:
    """All bytes until the peer closes; with `!reset` at their end where it breaks the connection."""
    data = bytearray()
    try:
        while piece := sock.recv(65536):
            data += piece
    except ConnectionResetError:
        data += b"!reset"
    return bytes(data)


class RecordingProxy:
    """A real `panglot record` process."""

    def __init__(self, url: str, output: Path, *flags: str, largest_file: int = 0) -> None:
        self.output = output
        command = [sys.executable, "-m", "panglot", "record", "--to", url, "-o", str(output), "--port", "0", *flags]
        limit = [] if not largest_file else ["prlimit", f"--fsize={largest_file}"]
        self.process = subprocess.Popen([*limit, *command], stderr=subprocess.PIPE, text=True, cwd=ROOT)
        assert self.process.stderr is not None
        self.lines: list[str] = []
        for line in self.process.stderr:
            self.lines.append(line)
            if found := re.search(r"listening on http://127\.0\.0\.1:(\d+)", line):
                self.port = int(found[1])
                break
        else:
            raise AssertionError("".join(self.lines))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def connect(self) -> socket.socket:
        sock = socket.create_connection(("127.0.0.1", self.port))
        sock.settimeout(30)
        return sock

    def stop(self) -> str:
        """End it, and give what it has printed."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        assert self.process.stderr is not None
        with contextlib.suppress(ValueError):
            self.lines += self.process.stderr.readlines()
            self.process.stderr.close()
        assert self.process.wait(30) == 0, "".join(self.lines)
        return "".join(self.lines)


@contextlib.contextmanager
def recorded(url: str, output: Path, *flags: str, largest_file: int = 0) -> Iterator[RecordingProxy]:
    proxy = RecordingProxy(url, output, *flags, largest_file=largest_file)
    try:
        yield proxy
    finally:
        if proxy.process.poll() is None:
            proxy.process.kill()
            proxy.process.wait()
        if proxy.process.stderr is not None:
            proxy.process.stderr.close()
