"""Between FFmpeg and an RTSP server: the one connection it has, to the address that was checked.

FFmpeg follows redirects of RTSP servers to any address. So it gets the address of a relay in its own process instead.
The relay connects to the checked server, and ends the conversation when a redirect comes. All media travel on that one
connection.
"""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from typing import Any, Sequence

from panglot_worker.net.hosts import Allowed
from panglot_worker.net.urls import RTSP, parse
from panglot_worker.video import tls
from panglot_worker.video.guarded import connect

STATUS = re.compile(rb"RTSP/\d\.\d (\d{3})")
LONGEST_LENGTH = 18
"""Digits of a length."""
LENGTH = re.compile(rb"^content-length:\s*(\d+)\s*$", re.IGNORECASE | re.MULTILINE)
LARGEST_HEAD = 65536
LARGEST_BODY = 1 << 20
INTERLEAVED = b"$"


class BadAnswer(Exception):
    """The server's answer is not RTSP, or leads elsewhere."""


class Relay:
    """A relay to one server. It connects to the server at once. FFmpeg opens `url`.

    Raises AddressRefused or OSError.
    """

    def __init__(self, url: str, url_allow: Sequence[str], timeout: float) -> None:
        address = parse(url, Allowed(url_allow), RTSP)
        self._server = connect(address, timeout)
        if address.scheme == "rtsps":
            self._server = tls.wrapped(self._server, address.host, timeout)
        self._listener = socket.socket()
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen(1)
        here = "127.0.0.1:%d" % self._listener.getsockname()[1]
        user = address.user + "@" if address.user else ""
        self.url = "rtsp://%s%s%s" % (user, here, address.target)
        # With a password, the client's proof covers the address too: changed here, the server would refuse it.
        self._spelt = (
            (b"", b"")
            if user
            else (b"rtsp://" + here.encode(), address.scheme.encode() + b"://" + address.authority.encode())
        )
        threading.Thread(target=self._run, name="relay", daemon=True).start()

    def _run(self) -> None:
        client, _ = self._listener.accept()
        # FFmpeg connects once. Nobody else on this machine may use the relay after it.
        self._listener.close()
        thread = threading.Thread(target=self._ask, args=(client,), name="relay", daemon=True)
        thread.start()
        try:
            self._answer(self._server.makefile("rb"), client)
        except (OSError, BadAnswer):
            pass
        for sock in (client, self._server):
            # Closing alone would not wake a thread that reads from the socket.
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()

    def _ask(self, client: socket.socket) -> None:
        here, there = self._spelt
        try:
            while True:
                data = client.recv(65536)
                if not data:
                    break
                # FFmpeg writes the relay's address into its requests, and the server must see its own.
                # Media packets stay as they are.
                self._server.sendall(data.replace(here, there) if here and data[:1] != INTERLEAVED else data)
        except OSError:
            pass

    def _answer(self, source: Any, client: socket.socket) -> None:
        """Pass on message by message until the end. Raises BadAnswer."""
        while True:
            first = source.read(1)
            if not first:
                return
            if first == INTERLEAVED:
                head = source.read(3)
                client.sendall(first + head + source.read(int.from_bytes(head[1:], "big")))
                continue
            head = first + self._head(source)
            status = STATUS.match(head)
            # FFmpeg would follow the redirect past the check of addresses.
            if status is not None and status[1].startswith(b"3"):
                raise BadAnswer("the server redirects")
            length = LENGTH.search(head)
            digits = length[1] if length is not None else b"0"
            # `int` of very many digits is slow, and raises since CPython 3.11.
            size = int(digits) if len(digits) <= LONGEST_LENGTH else LARGEST_BODY + 1
            if size > LARGEST_BODY:
                raise BadAnswer("an answer is too large")
            client.sendall(head + source.read(size))

    @staticmethod
    def _head(source: Any) -> bytes:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            line = source.readline(LARGEST_HEAD)
            head += line
            if not line or len(head) > LARGEST_HEAD:
                raise BadAnswer("an answer has no end")
            if head == b"\n" or head == b"\r\n":
                break
        return head
