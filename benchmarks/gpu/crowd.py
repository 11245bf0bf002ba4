"""Clients without wrk: processes with many connections each, which ask the same again as soon as they are answered."""

from __future__ import annotations

import multiprocessing
import selectors
import socket
import time
from dataclasses import dataclass
from typing import Any

END = b"\r\n\r\n"
LENGTH = b"content-length: "


@dataclass(frozen=True)
class Crowd:
    """What the clients saw: answers a second, and how long the middle and the slowest hundredth took."""

    rate: float
    p50_ms: float
    p99_ms: float
    failed: int


class Asker:
    """One connection. Sends the request piece by piece as the kernel takes it, and reads the answer."""

    def __init__(self, port: int, request: bytes) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setblocking(False)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.request = memoryview(request)
        self.sent = 0
        self.heard = b""
        self.began = 0.0

    def begin(self) -> None:
        self.sent, self.heard, self.began = 0, b"", time.monotonic()
        self.write()

    def write(self) -> bool:
        """Whether all of the request has been taken."""
        try:
            while self.sent < len(self.request):
                self.sent += self.socket.send(self.request[self.sent :])
        except BlockingIOError:
            return False
        return True

    def read(self) -> bytes:
        """The status line, once the answer is whole."""
        self.heard += self.socket.recv(65536)
        head, end, body = self.heard.partition(END)
        if not end:
            return b""
        start = head.lower().find(LENGTH) + len(LENGTH)
        length = int(head[start:].split(b"\r\n", 1)[0])
        return head if len(body) >= length else b""


def client(port: int, request: bytes, connections: int, until: float, results: Any) -> None:
    """One process of clients."""
    selector = selectors.DefaultSelector()
    for _ in range(connections):
        asker = Asker(port, request)
        selector.register(asker.socket, selectors.EVENT_READ | selectors.EVENT_WRITE, asker)
        asker.begin()
    latencies: list[float] = []
    failed = 0
    while time.monotonic() < until:
        for key, events in selector.select(0.1):
            asker = key.data
            if events & selectors.EVENT_WRITE and asker.write():
                selector.modify(asker.socket, selectors.EVENT_READ, asker)
            if events & selectors.EVENT_READ and (head := asker.read()):
                latencies.append(time.monotonic() - asker.began)
                failed += not head.startswith(b"HTTP/1.1 200")
                asker.begin()
                selector.modify(asker.socket, selectors.EVENT_READ | selectors.EVENT_WRITE, asker)
    results.put((latencies, failed))


def ask(
    port: int, path: str, body: bytes, content_type: str, processes: int, connections: int, seconds: float
) -> Crowd:
    """Load a server with so many connections in all, spread over processes."""
    lines = (
        f"POST {path} HTTP/1.1",
        "Host: localhost",
        f"Content-Type: {content_type}",
        f"Content-Length: {len(body)}",
    )
    request = "\r\n".join([*lines, "", ""]).encode() + body
    results: multiprocessing.Queue[tuple[list[float], int]] = multiprocessing.Queue()
    until = time.monotonic() + seconds
    arguments = (port, request, connections // processes, until, results)
    clients = [multiprocessing.Process(target=client, args=arguments) for _ in range(processes)]
    for process in clients:
        process.start()
    found = [results.get() for _ in clients]
    for process in clients:
        process.join()
    latencies = sorted(latency for some, _ in found for latency in some)
    count = len(latencies)
    if not count:
        return Crowd(0.0, 0.0, 0.0, 0)
    failed = sum(number for _, number in found)
    return Crowd(count / seconds, latencies[count // 2] * 1e3, latencies[count * 99 // 100] * 1e3, failed)
