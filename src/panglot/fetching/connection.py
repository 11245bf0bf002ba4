"""One GET or POST over HTTP/1.1, to one address that was checked."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from typing import Any, NamedTuple

import httptools

from panglot_worker.net.addresses import same
from panglot_worker.net.hosts import AddressRefused
from panglot_worker.net.urls import Url

READ = 65536
MOST_HEADERS = 65536


class FetchBroken(Exception):
    """The connection or the answer failed. The text is for the log."""


class FetchTooLarge(FetchBroken):
    """The answer has more bytes than it may have."""


class FetchResponse(NamedTuple):
    """An answer that came whole."""

    status: int
    location: str
    body: bytes
    retry_after: str = ""


class FetchConnection:
    """An open connection to a checked address; `close` it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def close(self) -> None:
        # Not `close`, which with TLS waits for the other side.
        self.writer.transport.abort()

    async def get(self, url: Url, most: int) -> FetchResponse:
        """Send the request and read the answer whole. Raises FetchBroken."""
        self.writer.write(
            f"GET {url.target} HTTP/1.1\r\nHost: {url.authority}\r\nUser-Agent: panglot\r\nAccept: */*\r\n"
            "Accept-Encoding: identity\r\nConnection: close\r\n\r\n".encode("ascii")
        )
        return await self._answer(most)

    async def post(self, url: Url, headers: Mapping[str, str], body: bytes, most: int) -> FetchResponse:
        """Send a body and read the answer whole. Raises FetchBroken."""
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        self.writer.write(
            f"POST {url.target} HTTP/1.1\r\nHost: {url.authority}\r\nUser-Agent: panglot\r\n{lines}"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode("ascii")
            + body
        )
        return await self._answer(most)

    async def _answer(self, most: int) -> FetchResponse:
        answer = ResponseReader(most)
        while not answer.complete:
            data = await self.reader.read(READ)
            if not data:
                answer.end()
                break
            answer.feed(data)
        return answer.response()


async def connect(url: Url, address: str, tls: ssl.SSLContext) -> FetchConnection:
    """Connect to that very address, and to no other. Raises OSError and AddressRefused."""
    secure: dict[str, Any] = {"ssl": tls, "server_hostname": url.host} if url.scheme == "https" else {}
    reader, writer = await asyncio.open_connection(address, url.port, limit=READ, **secure)
    connection = FetchConnection(reader, writer)
    peer = writer.get_extra_info("peername")
    if not peer or not same(str(peer[0]), address):
        connection.close()
        raise AddressRefused("the connection led elsewhere")
    return connection


class ResponseReader:
    """Collects an answer from the bytes that arrive. Raises FetchBroken; FetchTooLarge beyond `most` bytes of body."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.complete = False
        self._parser = httptools.HttpResponseParser(self)
        self._raw = 0
        self._pieces: list[bytes] = []
        self._size = 0
        self._headers: dict[str, str] = {}
        self._begun = False
        self._error: FetchBroken | None = None

    def feed(self, data: bytes) -> None:
        """Take bytes of the answer."""
        if not self._begun:
            self._raw += len(data)
            if self._raw > MOST_HEADERS + READ:
                raise FetchBroken("the head of the answer is too large")
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            if self._error is None and not self.complete:
                raise FetchBroken(f"the answer is not HTTP: {error}") from None
        except httptools.HttpParserUpgrade:
            raise FetchBroken("the answer changes the protocol") from None
        if self._error is not None:
            raise self._error

    def end(self) -> None:
        """Take the end of the connection: it completes a body of unknown length, and breaks every other body."""
        delimited = "content-length" in self._headers or "transfer-encoding" in self._headers
        if not self.complete and (delimited or not self._begun):
            raise FetchBroken("the connection was closed before the answer was complete")
        self.complete = True

    def response(self) -> FetchResponse:
        location = self._headers.get("location", "")
        retry_after = self._headers.get("retry-after", "")
        return FetchResponse(self._parser.get_status_code(), location, b"".join(self._pieces), retry_after)

    # Parser callbacks

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """Note what is wrong with the answer; `feed` raises it."""
        if self._parser.get_status_code() < 200:
            return
        self._begun = True
        length = self._headers.get("content-length", "")
        if length.isdecimal() and int(length) > self.most:
            self._error = FetchTooLarge(f"{length} bytes are too many")
        elif self._headers.get("content-encoding", "identity").lower() not in ("", "identity"):
            self._error = FetchBroken("the answer is compressed")

    def on_body(self, body: bytes) -> None:
        self._size += len(body)
        if self._size > self.most:
            self._error = FetchTooLarge(f"more than {self.most} bytes")
        elif self._error is None:
            self._pieces.append(body)

    def on_message_complete(self) -> None:
        if self._begun:
            self.complete = True
        else:
            # An interim answer; its headers are not those of the one to come.
            self._headers.clear()
