"""An address to bytes: checked, connected, redirected, within limits."""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import NamedTuple

from panglot.fetching.exchange import Broken, Connection, Response, TooLarge, connect
from panglot.fetching.resolving import look_up
from panglot.settings import Settings
from panglot.text import visible
from panglot_worker.net import urls
from panglot_worker.net.hosts import AddressRefused, Allowed
from panglot_worker.net.urls import Url

log = logging.getLogger("panglot.fetch")
ATTEMPTS = 4
"""Addresses of one name that are tried."""
OK, REFUSED, FAILED, TOO_LARGE, TIMEOUT, STATUS = "ok", "refused", "failed", "too_large", "timeout", "status"

Resolver = Callable[[str, int], Awaitable[list[str]]]


@dataclass(frozen=True)
class Limits:
    bytes: int = 20 << 20
    connect: float = 3.0
    total: float = 10.0
    redirects: int = 3
    urls: int = 16
    at_once: int = 16

    @classmethod
    def of(cls, settings: Settings) -> Limits:
        return cls(
            settings.fetch_bytes,
            settings.fetch_connect,
            settings.fetch_timeout,
            settings.fetch_redirects,
            settings.fetch_urls,
            settings.fetch_at_once,
        )


class Fetched(NamedTuple):
    """What came of an address: bytes, or, when `outcome` is STATUS, the refusal of whoever answers there."""

    outcome: str
    body: bytes = b""
    status: int = 0
    text: str = ""


class Fetcher:
    """Shared by all calls of a server. Redirects are followed by hand; proxies, cookies and credentials are unknown."""

    def __init__(self, limits: Limits, allowed: Allowed, resolve: Resolver = look_up) -> None:
        self.limits = limits
        self.allowed = allowed
        self._resolve = resolve
        self._places = asyncio.Semaphore(limits.at_once)
        self._tls: ssl.SSLContext | None = None

    async def fetch(self, url: str, request_id: str = "") -> Fetched:
        """Never raises, except when it is cancelled."""
        try:
            target = urls.parse(url, self.allowed)
            async with self._places, asyncio.timeout(self.limits.total):
                return await self._follow(target)
        except AddressRefused as error:
            fetched, why = Fetched(REFUSED), f"refused: {error}"
        except TimeoutError:
            fetched, why = Fetched(TIMEOUT), "not fetched in time"
        except TooLarge as error:
            fetched, why = Fetched(TOO_LARGE), str(error)
        except (Broken, OSError, ValueError) as error:
            fetched, why = Fetched(FAILED), f"{type(error).__name__}: {error}"
        log.info("request %s: %s: %s", request_id, visible(url[:200].partition("?")[0]), visible(why))
        return fetched

    async def _follow(self, target: Url) -> Fetched:
        for _ in range(self.limits.redirects + 1):
            response = await self._get(target)
            if response.status in urls.REDIRECTS:
                target = urls.redirected(target, response.location, self.allowed)
                continue
            return _judged(response)
        raise AddressRefused("too many redirects")

    async def _get(self, target: Url) -> Response:
        connection = await self._connect(target)
        try:
            return await connection.get(target, self.limits.bytes)
        finally:
            connection.close()

    async def _connect(self, target: Url) -> Connection:
        """Connect to an address the name stands for now; the one that was checked, not looked up again."""
        addresses = await self._resolve(target.host, target.port)
        urls.check_addresses(target, addresses)
        failure: OSError | None = None
        async with asyncio.timeout(self.limits.connect):
            for address in addresses[:ATTEMPTS]:
                try:
                    return await connect(target, address, self._context())
                except OSError as error:
                    failure = error
        raise failure or Broken("no connection")

    def _context(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = ssl.create_default_context()
        return self._tls


def _judged(response: Response) -> Fetched:
    """Whole answers are bytes; a refusal is passed on as it was given. Raises Broken for what is neither."""
    status = response.status
    if 200 <= status <= 299 and status != HTTPStatus.PARTIAL_CONTENT:
        return Fetched(OK, response.body, status)
    if 400 <= status <= 599:
        return Fetched(STATUS, status=status, text=_reason(response))
    raise Broken(f"the answer has status {status}")


def _reason(response: Response) -> str:
    """The `error` of a JSON answer, else the usual words for the status."""
    try:
        value = json.loads(response.body)
        if isinstance(value, dict) and isinstance(value.get("error"), str) and value["error"]:
            return str(value["error"])[:1000]
    except (ValueError, RecursionError):
        pass
    known = response.status in set(HTTPStatus)
    return HTTPStatus(response.status).phrase if known else "Unknown Status"
