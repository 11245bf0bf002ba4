"""Connections of a decoder: to addresses that were checked, and to nothing else."""

from __future__ import annotations

import http.client
import socket
import ssl
from typing import Any, Dict, Optional, Sequence, Tuple

from panglot_worker.net import urls
from panglot_worker.net.hosts import AddressRefused, Allowed
from panglot_worker.net.urls import Url

MOST_REDIRECTS = 3
CONNECT = 3.0


class Unreachable(Exception):
    """Nobody answers at the address, or not with a video."""


class TooLarge(Exception):
    """More bytes than may be read."""


def connect(url: Url, timeout: float) -> socket.socket:
    """Connect to one of the addresses that a URL's host has now. Raises AddressRefused or OSError."""
    entries = socket.getaddrinfo(url.host, url.port, type=socket.SOCK_STREAM)
    # All addresses are checked, and the connection goes to one of these entries: the name is not looked up again.
    urls.check_addresses(url, [str(entry[4][0]) for entry in entries])
    failure: Optional[OSError] = None
    for family, kind, protocol, _, where in entries[:4]:
        sock = socket.socket(family, kind, protocol)
        sock.settimeout(min(timeout, CONNECT))
        try:
            sock.connect(where)
            sock.settimeout(timeout)
            return sock
        except OSError as error:
            sock.close()
            failure = error
    raise failure or OSError("no connection")


class HttpStream:
    """The body of an HTTP answer, as a file that is read once. `broken`: the connection ended before the body did."""

    def __init__(self, url: str, url_allow: Sequence[str], most: int, timeout: float) -> None:
        self._allowed = Allowed(url_allow)
        self._timeout = timeout
        self.url = urls.parse(url, self._allowed)
        self._answer = self._get({})
        length = self._answer.getheader("content-length")
        self.size = int(length) if length and length.isdigit() else -1
        if self.size > most:
            raise TooLarge("the file has %d bytes, more than %d" % (self.size, most))
        self.broken = False

    @property
    def live(self) -> bool:
        return self.size < 0

    @property
    def ranges(self) -> bool:
        return self.size >= 0 and self._answer.getheader("accept-ranges", "") == "bytes"

    def read(self, count: int = -1) -> bytes:
        """At most so many bytes, as soon as there are any; nothing at the end, or when the connection breaks."""
        try:
            # Not read(): for a live source it waits until all bytes are there.
            data: bytes = self._answer.read1(count)
        except (OSError, http.client.HTTPException):
            self.broken = True
            return b""
        if not data:
            self.broken = self.broken or self._short()
        return data

    def _short(self) -> bool:
        # Without a length and without chunks, only the end of the connection ends the body: it may be a breakdown.
        return bool(self._answer.length) if self.size >= 0 else not self._chunked

    def _get(self, headers: Dict[str, str]) -> Any:
        for _ in range(MOST_REDIRECTS + 1):
            answer = self._ask(headers)
            if answer.status in urls.REDIRECTS:
                self.url = urls.redirected(self.url, answer.getheader("location", ""), self._allowed)
                answer.close()
                continue
            if answer.status not in (200, 206):
                raise Unreachable("the answer has status %d" % answer.status)
            self._chunked = bool(answer.chunked)
            return answer
        raise AddressRefused("too many redirects")

    def _ask(self, headers: Dict[str, str]) -> Any:
        url = self.url
        sock = connect(url, self._timeout)
        try:
            if url.scheme == "https":
                sock = ssl.create_default_context().wrap_socket(sock, server_hostname=url.host)
            connection = http.client.HTTPConnection(url.host, url.port)
            connection.sock = sock
            # With a socket in place http.client does not connect itself, which would look the name up again, unchecked.
            connection.putrequest("GET", url.target, skip_host=True, skip_accept_encoding=True)
            # Compressed answers would make byte ranges and sizes meaningless for a video.
            about = {"Host": url.authority, "Accept-Encoding": "identity", "Connection": "close", **headers}
            for name, value in about.items():
                connection.putheader(name, value)
            connection.endheaders()
            return connection.getresponse()
        except (ValueError, http.client.HTTPException) as error:
            sock.close()
            raise Unreachable("the answer is not HTTP: %s" % type(error).__name__) from None


class SeekableHttpStream:
    """An HttpStream that can seek, since its server sends any range. It has the methods that PyAV uses, no others."""

    def __init__(self, source: HttpStream) -> None:
        self.source = source
        self._at = 0

    def read(self, count: int = -1) -> bytes:
        data = self.source.read(count)
        self._at += len(data)
        return data

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = 0) -> int:
        target = offset + (0, self._at, self.source.size)[whence]
        if target != self._at:
            self._reopen(target)
        return self._at

    def _reopen(self, target: int) -> None:
        source = self.source
        source._answer.close()
        answer = source._get({"Range": "bytes=%d-" % target})
        # A server may ignore Range and send the whole from the beginning, with status 200.
        if answer.status != 206 and target:
            raise Unreachable("the server does not send parts of the video")
        source._answer, self._at = answer, target


def opened(url: str, url_allow: Sequence[str], most: int, timeout: float) -> Tuple[HttpStream, Any]:
    """Open a URL. Returns its stream, and a file that reads it; the file can seek where the server allows it."""
    source = HttpStream(url, url_allow, most, timeout)
    return source, SeekableHttpStream(source) if source.ranges else source
