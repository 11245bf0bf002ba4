"""Fetching what a URL leads to: checked, within limits, redirects included."""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import NamedTuple

from panglot.fetching.connection import FetchBroken, FetchConnection, FetchResponse, FetchTooLarge, connect
from panglot.fetching.name_lookup import look_up
from panglot.settings import Settings
from panglot.terminal.text import visible
from panglot_worker.net import urls
from panglot_worker.net.hosts import AddressRefused, Allowed
from panglot_worker.net.urls import Url

log = logging.getLogger("panglot.fetch")
ATTEMPTS = 4
"""How many addresses of one name are tried."""
OK, REFUSED, FAILED, TOO_LARGE, TIMEOUT, STATUS = "ok", "refused", "failed", "too_large", "timeout", "status"

Resolver = Callable[[str, int], Awaitable[list[str]]]


@dataclass(frozen=True)
class FetchLimits:
    """How much may be fetched: bytes, seconds and redirects of each URL, URLs of each request, fetches at once."""

    bytes: int = 20 << 20
    connect: float = 3.0
    total: float = 10.0
    redirects: int = 3
    urls: int = 16
    at_once: int = 16

    @classmethod
    def of(cls, settings: Settings) -> FetchLimits:
        """The limits that these settings give."""
        return cls(
            settings.fetch_bytes,
            settings.fetch_connect,
            settings.fetch_timeout,
            settings.fetch_redirects,
            settings.fetch_urls,
            settings.fetch_at_once,
        )


class Fetched(NamedTuple):
    """What a URL led to: bytes, or, when `outcome` is STATUS, the error that the server there answered with."""

    outcome: str
    body: bytes = b""
    status: int = 0
    text: str = ""


class Fetcher:
    """Fetches URLs, for all calls of a server. Checks each redirect; knows no proxies, cookies or credentials."""

    def __init__(self, limits: FetchLimits, allowed: Allowed, resolve: Resolver = look_up) -> None:
        self.limits = limits
        self.allowed = allowed
        self._resolve = resolve
        self._places = asyncio.Semaphore(limits.at_once)
        self._tls: ssl.SSLContext | None = None

    async def fetch(self, url: str, request_id: str = "") -> Fetched:
        """Fetch a URL. Never raises, except when it is cancelled."""
        try:
            target = urls.parse(url, self.allowed)
            # The time counts once it has a place: the wait for one is no fault of the address.
            async with self._places, asyncio.timeout(self.limits.total):
                return await self._follow(target)
        except AddressRefused as error:
            fetched, why = Fetched(REFUSED), f"refused: {error}"
        except TimeoutError:
            # Caught before OSError, of which it is a subclass.
            fetched, why = Fetched(TIMEOUT), "not fetched in time"
        except FetchTooLarge as error:
            fetched, why = Fetched(TOO_LARGE), str(error)
        except (FetchBroken, OSError, ValueError) as error:
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

    async def _get(self, target: Url) -> FetchResponse:
        connection = await self._connect(target)
        try:
            return await connection.get(target, self.limits.bytes)
        finally:
            connection.close()

    async def _connect(self, target: Url) -> FetchConnection:
        """Look up the name, check its addresses, and connect to one of them: it is not looked up again."""
        addresses = await self._resolve(target.host, target.port)
        urls.check_addresses(target, addresses)
        failure: OSError | None = None
        async with asyncio.timeout(self.limits.connect):
            for address in addresses[:ATTEMPTS]:
                try:
                    return await connect(target, address, self._context())
                except OSError as error:
                    failure = error
        raise failure or FetchBroken("no connection")

    def _context(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = ssl.create_default_context()
        return self._tls


def _judged(response: FetchResponse) -> Fetched:
    """The outcome of an answer: its bytes, or its error as it was given. Raises FetchBroken for every other status."""
    status = response.status
    if 200 <= status <= 299 and status != HTTPStatus.PARTIAL_CONTENT:
        return Fetched(OK, response.body, status)
    if 400 <= status <= 599:
        return Fetched(STATUS, status=status, text=_reason(response))
    raise FetchBroken(f"the answer has status {status}")


def _reason(response: FetchResponse) -> str:
    """The `error` of a JSON answer, else the usual words for the status."""
    try:
        value = json.loads(response.body)
        if isinstance(value, dict) and isinstance(value.get("error"), str) and value["error"]:
            return str(value["error"])[:1000]
    except (ValueError, RecursionError):
        pass
    known = response.status in set(HTTPStatus)
    return HTTPStatus(response.status).phrase if known else "Unknown Status"
