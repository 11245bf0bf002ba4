"""The debug websocket of MegFlow: `ws://host:port/debugger`, one client at a time, rates and queue lengths of nodes."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import json
import logging
import struct
from collections.abc import AsyncIterator, Iterator
from typing import Any

from panglot.web.access.tokens import Access, is_loopback
from panglot.web.models import Model

log = logging.getLogger("panglot.web")
MAGIC = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
"""The text that RFC 6455 adds to a client's key."""
PATH = b"/debugger"
TEXT, CLOSE, PING, PONG = 1, 8, 9, 10
LARGEST = 65536
"""Bytes of a message, with all its fragments."""
HEAD_WITHIN = 10.0
"""Seconds in which a client must have sent the head of its request."""
PERIOD = 1.0
"""Seconds between two reports."""


async def serve(model: Model, access: Access, port: int) -> None:
    """Serve until cancelled. Without its port it only logs an error: the graph runs without a debugger too."""
    debugger = Debugger(model, access)
    host = model.settings.host
    try:
        server = await asyncio.start_server(debugger.connected, host, port, limit=LARGEST)
    except OSError as error:
        log.error("the debug websocket cannot listen on %s:%d: %s", host, port, error.strerror or error)
        return
    where = server.sockets[0].getsockname()
    log.info("debug websocket on ws://%s:%d%s", where[0], where[1], PATH.decode())
    async with server:
        await server.serve_forever()


class Debugger:
    def __init__(self, model: Model, access: Access) -> None:
        self.model = model
        self.access = access
        self.busy = False

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one WebSocket client of the debugger; a second one at the same time is refused."""
        try:
            async with asyncio.timeout(HEAD_WITHIN):
                head = await reader.readuntil(b"\r\n\r\n")
            refusal = self._refusal(head)
            if refusal:
                writer.write(refusal)
                return
            # No `await` since `_refusal` looked at it: no second client can come in between.
            self.busy = True
            try:
                writer.write(_accepted(_headers(head)[b"sec-websocket-key"]))
                await self._session(reader, writer)
            finally:
                self.busy = False
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            with contextlib.suppress(OSError):
                writer.close()

    def _refusal(self, head: bytes) -> bytes:
        """The whole answer to a request that is refused; empty for a request that is not."""
        headers = _headers(head)
        access = self.access
        if head.split(b" ", 2)[:2] != [b"GET", PATH] or b"sec-websocket-key" not in headers:
            return _answer(b"404 Not Found", b"the debug websocket is at /debugger")
        if not access.opens("admin", PATH.decode(), headers.get(b"authorization", b"")):
            return _answer(b"401 Unauthorized", b"this server needs a token: Authorization: Bearer ...")
        # Browsers let a page of any origin open a WebSocket: only the server can refuse it.
        foreign = b"origin" in headers and not access.is_closed and not self._is_local(headers[b"origin"])
        if not access.knows(headers.get(b"host", b"")) or foreign or headers.get(b"sec-fetch-site") == b"cross-site":
            return _answer(b"403 Forbidden", b"not from there")
        return _answer(b"503 Service Unavailable", b"another debugger is connected") if self.busy else b""

    @staticmethod
    def _is_local(origin: bytes) -> bool:
        name = origin.partition(b"://")[2].rpartition(b":")[0] or origin.partition(b"://")[2]
        return is_loopback(name.decode("latin-1").strip("[]"))

    async def _session(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        config = self.model.package.options["config"]
        _send(writer, {"ty": "event", "event": "initialized", "features": ["QPS"], "graph": config["text"]})
        sampler: asyncio.Task[None] | None = None
        try:
            async for text in _messages(reader, writer):
                request = _request(text)
                if request is None:
                    continue
                if sampler is not None:
                    sampler.cancel()
                    sampler = None
                if request["command"] == "start":
                    sampler = asyncio.ensure_future(self._sample(writer, request))
                elif request["command"] == "stop":
                    _send(writer, {"ty": "event", "event": "stop", "feature": "QPS", "seq_id": request.get("seq_id")})
                await writer.drain()
        finally:
            if sampler is not None:
                sampler.cancel()

    async def _sample(self, writer: asyncio.StreamWriter, request: dict[str, Any]) -> None:
        """Send a report for each worker's graph every second, the first one after a second."""
        await asyncio.sleep(PERIOD)
        while True:
            for name, nodes in self._graphs():
                response = {
                    "ty": "response", "success": True, "feature": "QPS", "seq_id": request.get("seq_id"),
                    "command": "noop", "graph": name, "nodes": nodes,
                }  # fmt: skip
                _send(writer, response)
            await writer.drain()
            await asyncio.sleep(PERIOD)

    def _graphs(self) -> Iterator[tuple[str, list[dict[str, Any]]]]:
        main = self.model.package.options["config"]["main"]
        for worker in self.model.engine.workers():
            nodes = (worker.get("report") or {}).get("nodes", [])
            yield (
                main,
                [
                    {
                        "name": node["name"],
                        "qps": {
                            port: [entry.get("queued", 0), entry["rate"]]
                            for port, entry in (*node["inputs"].items(), *node["outputs"].items())
                        },
                        "is_block": node["blocked"],
                    }
                    for node in nodes
                ],
            )


def _request(text: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    known = isinstance(value, dict) and value.get("ty") == "request" and value.get("feature") == "QPS"
    return value if known and value.get("command") in ("start", "stop") else None


# Websocket framing


def _headers(head: bytes) -> dict[bytes, bytes]:
    lines = (line.partition(b":") for line in head.split(b"\r\n")[1:] if b":" in line)
    return {name.strip().lower(): value.strip() for name, _, value in lines}


def _accepted(key: bytes) -> bytes:
    digest = base64.b64encode(hashlib.sha1(key + MAGIC, usedforsecurity=False).digest())
    lines = (b"HTTP/1.1 101 Switching Protocols", b"Upgrade: websocket", b"Connection: Upgrade")
    return b"\r\n".join((*lines, b"Sec-WebSocket-Accept: " + digest)) + b"\r\n\r\n"


def _answer(status: bytes, text: bytes) -> bytes:
    head = b"HTTP/1.1 %s\r\nContent-Type: text/plain\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
    return head % (status, len(text)) + text


def _send(writer: asyncio.StreamWriter, value: dict[str, Any]) -> None:
    writer.write(frame(TEXT, json.dumps(value).encode()))


def frame(kind: int, body: bytes) -> bytes:
    """One unmasked frame, as a server sends it."""
    size = len(body)
    if size < 126:
        return struct.pack("!BB", 0x80 | kind, size) + body
    if size < 65536:
        return struct.pack("!BBH", 0x80 | kind, 126, size) + body
    return struct.pack("!BBQ", 0x80 | kind, 127, size) + body


async def _messages(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> AsyncIterator[bytes]:
    """Whole text messages until the client closes, or breaks the rules."""
    message = b""
    while True:
        first, second = await reader.readexactly(2)
        kind, size = first & 15, second & 127
        if size == 126:
            (size,) = struct.unpack("!H", await reader.readexactly(2))
        elif size == 127:
            (size,) = struct.unpack("!Q", await reader.readexactly(8))
        # RFC 6455 wants every frame of a client masked, and the connection closed over one that is not.
        if not second & 128 or size + len(message) > LARGEST or kind == CLOSE:
            writer.write(frame(CLOSE, b""))
            return
        mask = await reader.readexactly(4)
        body = bytes(byte ^ mask[index % 4] for index, byte in enumerate(await reader.readexactly(size)))
        if kind == PING:
            writer.write(frame(PONG, body))
        # 0: the next fragment of a message.
        elif kind in (0, TEXT):
            message += body
            if first & 128:
                yield message
                message = b""
