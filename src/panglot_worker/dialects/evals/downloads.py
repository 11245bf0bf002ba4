"""Files of a model that are named by address: fetched once for a front, by the rules for addresses in requests."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import os
import socket
import tempfile
import time
from typing import Any, BinaryIO, Callable, Dict, Iterator, NamedTuple, Sequence

from panglot_worker.errors import ScriptError
from panglot_worker.net.hosts import AddressRefused
from panglot_worker.video.guarded import HttpStream, TooLarge, Unreachable

CHUNK = 1 << 20
ETAG_BLOCK = 4 << 20
SIGNED_FOR = 3600
"""Seconds for which a signed address is good."""


class Limits(NamedTuple):
    """The limits of a download: bytes in all, seconds without a byte, and the hosts that need not be public."""

    bytes: int
    silence: float
    url_allow: Sequence[str]


class Downloads:
    """The files behind addresses. All workers of a front share them, beside their private folders."""

    def __init__(self, folder: str, options: Dict[str, Any], limits: Limits, progress: Callable[[str], None]) -> None:
        self.folder = folder
        self.addresses: Dict[str, Any] = options.get("addresses") or {}
        self.owner: Dict[str, str] = options.get("owner") or {}
        self.limits = limits
        self.progress = progress

    def path(self, name: str, source: str) -> str:
        """The local file of a source: the source itself, or the download from its address. Raises ScriptError."""
        if source not in self.addresses:
            return source
        url, algorithm, digest, private = self.addresses[source]
        path = os.path.join(self.folder, hashlib.sha256(source.encode()).hexdigest())
        # Workers that start at the same moment may each fetch it. Either copy is complete when it gets this path.
        if not os.path.exists(path):
            self.progress("fetching %s" % name)
            with self._whole(path) as file:
                self._fetch(name, self._signed(url) if private else url, file)
                # While the path is still free: other workers take a file that is there without a check.
                _check(name, file.name, algorithm, digest)
        return path

    @contextlib.contextmanager
    def _whole(self, path: str) -> Iterator[Any]:
        """A file to write to: it gets its final path when it is complete, and is removed if writing fails."""
        os.makedirs(self.folder, mode=0o700, exist_ok=True)
        # In the same folder: only within one file system is a rename atomic.
        with tempfile.NamedTemporaryFile(dir=self.folder, delete=False) as file:
            try:
                yield file
                os.replace(file.name, path)
            except BaseException:
                os.unlink(file.name)
                raise

    def _signed(self, url: str) -> str:
        """The address of a private file, as its owner's keys sign it."""
        url = "%s?e=%d" % (url, time.time() + SIGNED_FOR)
        signature = hmac.new(self.owner["sk"].encode(), url.encode(), hashlib.sha1).digest()
        return "%s&token=%s:%s" % (url, self.owner["ak"], base64.urlsafe_b64encode(signature).decode())

    def _fetch(self, name: str, url: str, file: BinaryIO) -> None:
        """Write what an address leads to. Raises ScriptError."""
        try:
            self._copy(url, file)
            file.flush()
        except AddressRefused as error:
            fix = "let it by --url-allow, or download it and name the file"
            raise _failed(name, url, str(error), fix) from None
        except TooLarge:
            why = "it has more than %d bytes" % self.limits.bytes
            raise _failed(name, url, why, "let it by --model-file-bytes") from None
        except (Unreachable, OSError) as error:
            raise _failed(name, url, _reason(error), "see to it, or download it and name the file") from None

    def _copy(self, url: str, file: BinaryIO) -> None:
        source = HttpStream(url, self.limits.url_allow, self.limits.bytes, self.limits.silence)
        size = 0
        while True:
            data = source.read(CHUNK)
            if not data:
                break
            size += len(data)
            # The stream itself checks no more than the announced length.
            if size > self.limits.bytes:
                raise TooLarge
            file.write(data)
        if source.broken:
            raise Unreachable("the connection ended before the file was complete")


def _reason(error: Exception) -> str:
    """An error of the network in words."""
    if isinstance(error, socket.gaierror):
        return "there is no such host"
    if isinstance(error, socket.timeout):
        return "nobody answered in time"
    return getattr(error, "strerror", None) or str(error)


def _failed(name: str, url: str, why: str, fix: str) -> ScriptError:
    return ScriptError("%s cannot be fetched from %s: %s" % (name, url.partition("?")[0], why), fix=fix)


def _check(name: str, path: str, algorithm: str, digest: str) -> None:
    """Raises ScriptError when the file is not the one that was meant."""
    if not digest:
        return
    actual = etag(path) if algorithm == "etag" else _digest(path, algorithm)
    if not hmac.compare_digest(actual, digest):
        fix = "correct the hash, or the file there"
        raise ScriptError("%s is not what it should be: its %s is %s" % (name, algorithm, actual), fix=fix)


def _digest(path: str, algorithm: str) -> str:
    total = hashlib.new(algorithm)
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(CHUNK), b""):
            total.update(block)
    return total.hexdigest()


def etag(path: str) -> str:
    """The hash that Qiniu's storage shows: of the file's only block, or of the hashes of its blocks."""
    with open(path, "rb") as file:
        blocks = [hashlib.sha1(block).digest() for block in iter(lambda: file.read(ETAG_BLOCK), b"")]  # noqa: S324  the platform's digest
    if len(blocks) > 1:
        return base64.urlsafe_b64encode(b"\x96" + hashlib.sha1(b"".join(blocks)).digest()).decode()  # noqa: S324  the platform's digest
    return base64.urlsafe_b64encode(b"\x16" + (blocks[0] if blocks else hashlib.sha1().digest())).decode()  # noqa: S324  the platform's digest
