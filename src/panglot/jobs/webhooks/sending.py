"""Telling receivers of webhooks about stored events of jobs, signed by Standard Webhooks 1.0.0."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
import logging
import random
import ssl
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from panglot.errors import StartError
from panglot.fetching.connection import FetchBroken, connect
from panglot.fetching.name_lookup import look_up
from panglot.jobs.board import JobBoard
from panglot.jobs.job import DueWebhook, JobTrouble
from panglot_worker.net import urls
from panglot_worker.net.hosts import AddressRefused, Allowed

PAUSES = (5.0, 30.0, 300.0, 1800.0, 7200.0, 18000.0, 36000.0)
"""Seconds before each further attempt: about 18 hours in all."""
TIMEOUT = 15.0
AT_ONCE, AT_ONCE_OF_HOST = 16, 4
LONGEST_ANSWER = 65536
MOST_DUE = 100
"""Events that are read at once."""
LOOK_AGAIN = 0.2
"""Seconds between two looks while a receiver hangs."""
GONE = "410"
REMOVED = "the job was removed"
MAKE_SECRET = "python3 -c \"import base64, os; print('whsec_' + base64.b64encode(os.urandom(32)).decode())\""  # noqa: S105  a command
"""A command that prints a new secret."""
UNSIGNED = "webhooks are sent without a signature: no secret is set"
SIGN = f"set PANGLOT_WEBHOOK_SECRET or --webhook-secret-file, with the output of {MAKE_SECRET}"

log = logging.getLogger("panglot.jobs")

Trace = tuple[tuple[str, str], ...]


class WebhookContent(NamedTuple):
    """What an event is sent with."""

    body: bytes
    trace: Trace
    """The headers that continue the trace of the job's request."""


MakeContent = Callable[[DueWebhook], Awaitable[WebhookContent | None]]
"""Makes the body of an event; None: the job was removed. Raises JobTrouble when it cannot be made now."""


def refusal(url: str, allowed: tuple[str, ...]) -> str:
    """Why a server with this `webhook_allow` may not call an address; empty: it may."""
    try:
        target = urls.parse(url, Allowed(allowed))
    except AddressRefused as error:
        return f"the webhook may not be called: {error}"
    return "" if target.free else f"the webhook may not be called: --webhook-allow does not name {target.host}"


def secrets_of(file: str, given: str) -> list[bytes]:
    """The keys that sign, the newest first; several are separated by spaces. Raises StartError."""
    try:
        text = Path(file).read_text(encoding="ascii") if file else given
    except (OSError, UnicodeDecodeError) as error:
        raise StartError(f"the secret of webhooks cannot be read: {error}", file=file) from None
    keys = []
    for word in text.split():
        try:
            key = base64.b64decode(word.removeprefix("whsec_"), validate=True)
        except binascii.Error:
            key = b""
        if not 24 <= len(key) <= 64:
            raise StartError("the secret of webhooks is no whsec_ with 24 to 64 bytes in base64", fix=MAKE_SECRET)
        keys.append(key)
    return keys


def signature(keys: list[bytes], name: str, timestamp: int, body: bytes) -> str:
    """The header webhook-signature."""
    content = f"{name}.{timestamp}.".encode() + body
    digests = (hmac.new(key, content, hashlib.sha256).digest() for key in keys)
    return " ".join("v1," + base64.b64encode(digest).decode() for digest in digests)


class WebhookSender:
    """Sends the events that are due. They are stored with their times, so a restart changes nothing."""

    def __init__(self, board: JobBoard, allowed: tuple[str, ...], keys: list[bytes], make_content: MakeContent) -> None:
        self.board = board
        self.allowed = allowed
        self.keys = keys
        self.make_content = make_content
        self.outcomes = board.webhooks
        self._sending: set[int] = set()
        self._hosts: Counter[str] = Counter()
        self._looking = False
        self._looked = 0.0
        self._later: asyncio.TimerHandle | None = None
        """The next look, where the last one was a moment ago."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._tls: ssl.SSLContext | None = None

    def look(self) -> None:
        """Send the events that are due, unless the store is being asked for them."""
        if self._looking or self._later is not None or not self.board.is_used or len(self._sending) >= AT_ONCE:
            return
        # Without the hosts that take no more: else the oldest events are all theirs, and nobody else is told.
        busy = [host for host, count in self._hosts.items() if count >= AT_ONCE_OF_HOST]
        # The store passes over all events of these hosts each time, while submits wait for it.
        loop = asyncio.get_running_loop()
        if busy and loop.time() < self._looked + LOOK_AGAIN:
            self._later = loop.call_at(self._looked + LOOK_AGAIN, self._look_later)
            return
        self._looking, self._looked = True, loop.time()
        query = self.board.store.now(), MOST_DUE, tuple(self._sending), tuple(busy)
        self.board.store.read("due_webhooks", *query, then=self._due)

    def _look_later(self) -> None:
        self._later = None
        self.look()

    def close(self) -> None:
        if self._later is not None:
            self._later.cancel()
        for task in self._tasks:
            task.cancel()

    def _due(self, events: list[DueWebhook] | JobTrouble) -> None:
        self._looking = False
        if isinstance(events, JobTrouble):
            return
        before = len(self._sending)
        for event in events:
            host = urlsplit(event.url).netloc
            busy = len(self._sending) >= AT_ONCE or self._hosts[host] >= AT_ONCE_OF_HOST
            if event.number in self._sending or busy:
                continue
            self._sending.add(event.number)
            self._hosts[host] += 1
            task = asyncio.ensure_future(self._send(event, host))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        if len(events) == MOST_DUE and len(self._sending) > before:
            # Events of other hosts may stand behind those that were read.
            self.look()

    async def _send(self, event: DueWebhook, host: str) -> None:
        try:
            try:
                content = await self.make_content(event)
                fault, retry_after = (REMOVED, 0.0) if content is None else await self.post(event, *content)
            except JobTrouble as trouble:
                fault, retry_after = str(trouble), 0.0
            # Recorded before it leaves `_sending`: else the next look would send it again at once.
            await self._record(event, fault, retry_after)
        finally:
            self._sending.discard(event.number)
            self._hosts[host] -= 1
            if not self._hosts[host]:
                del self._hosts[host]
        self.look()

    async def _record(self, event: DueWebhook, fault: str, retry_after: float) -> None:
        done: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        write = self.board.store.write
        if not fault:
            self.outcomes["delivered"] += 1
            write("delivered", event.number, then=done.set_result)
        elif event.attempts >= len(PAUSES) or fault in (GONE, REMOVED):
            self.outcomes["dropped"] += 1
            log.error("webhook %s is given up after %d tries: %s", event.id, event.attempts + 1, fault)
            write("delivered", event.number, then=done.set_result)
        else:
            self.outcomes["failed"] += 1
            pause = max(PAUSES[event.attempts] * random.uniform(0.8, 1.2), retry_after)  # noqa: S311
            write("postpone", event.number, self.board.store.now() + pause, fault, then=done.set_result)
        await done

    async def post(self, event: DueWebhook, body: bytes, trace: Trace) -> tuple[str, float]:
        """Send an event once. Returns what went wrong, or "", and the seconds to wait that the receiver asks for."""
        try:
            target = urls.parse(event.url, Allowed(self.allowed))
            if not target.free:
                return "--webhook-allow does not name it", 0.0
            async with asyncio.timeout(TIMEOUT):
                addresses = await look_up(target.host, target.port)
                # The checked address is used, and the name not looked up again: it may lead elsewhere by then.
                urls.check_addresses(target, addresses)
                connection = await connect(target, addresses[0], self._context())
                try:
                    response = await connection.post(
                        target, {**dict(trace), **self._headers(event, body)}, body, LONGEST_ANSWER
                    )
                finally:
                    connection.close()
        except AddressRefused as error:
            return str(error), 0.0
        except TimeoutError:
            return "no answer in time", 0.0
        except (FetchBroken, OSError, ValueError) as error:
            return f"{type(error).__name__}: {error}", 0.0
        if 200 <= response.status <= 299:
            return "", 0.0
        given = response.retry_after
        return str(response.status), min(float(given), 3600.0) if given.isdecimal() else 0.0

    def _headers(self, event: DueWebhook, body: bytes) -> Mapping[str, str]:
        now = int(time.time())
        headers = {"content-type": "application/json", "webhook-id": event.id, "webhook-timestamp": str(now)}
        if self.keys:
            headers["webhook-signature"] = signature(self.keys, event.id, now, body)
        return headers

    def _context(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = ssl.create_default_context()
        return self._tls
