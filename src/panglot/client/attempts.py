"""Which calls are sent again, and when. Nothing here sends or sleeps: the client that drives `attempts` does.

A call is sent again when it certainly did not run: there was no connection, or the server answered 503 (429 on some
platforms). When a connection is lost after the request was sent, the call may have run; it is sent again only where
the caller says that running it twice does no harm.
"""

from __future__ import annotations

import random
import secrets
import socket
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import TypeVar

import httpx

from panglot.client.errors import CallError, of_exception, of_response

TOO_BUSY = (429, 503)
FIRST_PAUSE = 0.05
LONGEST_PAUSE = 2.0
UNREACHABLE = (httpx.ConnectError, httpx.ConnectTimeout)


@dataclass(frozen=True)
class CallPolicy:
    """How long a call may take in all, how long to go on connecting, and whether a lost call is sent again."""

    timeout: float = 60.0
    connect_timeout: float = 10.0
    retry: bool = False
    too_busy: tuple[int, ...] = TOO_BUSY
    """The statuses by which a server says that it did not run the call."""


@dataclass(frozen=True)
class Outgoing:
    """A request, complete but for the address of the server."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes = b""


@dataclass(frozen=True)
class Send:
    """Send the request, with this long to get an answer."""

    request: Outgoing
    seconds: float
    whole: bool
    """Whether the body is read at once; else the caller reads it as it comes, and closes the response."""

    def timeout(self, policy: CallPolicy) -> httpx.Timeout:
        return httpx.Timeout(self.seconds, connect=min(self.seconds, policy.connect_timeout))


@dataclass(frozen=True)
class Pause:
    """Wait before the next attempt."""

    seconds: float


Outcome = httpx.Response | httpx.HTTPError | None
"""The result of a Send; None for a Pause."""
Result = TypeVar("Result")
Steps = Generator[Send | Pause, Outcome, Result]
"""The steps of a client, and their result. Steps only say what to do: the client that drives them sends and sleeps."""


def attempts(
    request: Outgoing, policy: CallPolicy, url: str, clock: Callable[[], float], whole: bool = True
) -> Steps[httpx.Response]:
    """Send until the server is not too busy to answer. Raises CallError when the time is over."""
    began = clock()
    deadline = began + policy.timeout
    # The same id for all attempts, so that the server's log shows them as one call.
    request_id = secrets.token_hex(8)
    pauses = _pauses()
    while True:
        left = max(0.001, deadline - clock())
        # Rounded up: a deadline of 0 milliseconds would have passed already.
        headers = {**request.headers, "x-request-id": request_id, "x-timeout-ms": str(int(left * 1000) + 1)}
        outcome = yield Send(Outgoing(request.method, request.path, headers, request.body), left, whole)
        if isinstance(outcome, httpx.Response) and outcome.status_code not in policy.too_busy:
            return outcome
        # Not sooner than the server asks for.
        pause = max(next(pauses), _retry_after(outcome))
        again = clock() + pause
        gives_up = isinstance(outcome, UNREACHABLE) and again > began + policy.connect_timeout
        if again >= deadline or gives_up or not _is_safe(outcome, policy):
            raise _error(outcome, url, request_id)
        yield Pause(pause)


def _is_safe(outcome: Outcome, policy: CallPolicy) -> bool:
    """Whether the call may be sent once more: it was not run, or the caller allows it to run twice."""
    if isinstance(outcome, httpx.Response):
        return True
    if isinstance(outcome, UNREACHABLE):
        # Nothing was sent, so the call did not run.
        return not _is_unknown_name(outcome)
    # A timeout is not among these errors: the call may still be running.
    return policy.retry and isinstance(outcome, httpx.NetworkError | httpx.RemoteProtocolError)


def _is_unknown_name(error: BaseException | None) -> bool:
    """Whether the name of the host is unknown; then waiting does not help."""
    while error is not None:
        if isinstance(error, socket.gaierror):
            # With EAI_AGAIN, the resolver has no answer yet, and waiting may help.
            return error.errno != socket.EAI_AGAIN
        error = error.__cause__ or error.__context__
    return False


def _retry_after(outcome: Outcome) -> float:
    """The seconds in the header Retry-After; 0 without one."""
    text = outcome.headers.get("retry-after", "") if isinstance(outcome, httpx.Response) else ""
    return float(text) if text.isdecimal() else 0.0


def _pauses() -> Iterator[float]:
    """Pauses that grow, each with a random part, so that many clients do not come back at the same moment."""
    pause = FIRST_PAUSE
    while True:
        yield pause * random.uniform(0.5, 1.0)  # noqa: S311  spreads retries
        pause = min(LONGEST_PAUSE, pause * 2)


def _error(outcome: Outcome, url: str, request_id: str) -> CallError:
    if isinstance(outcome, httpx.Response):
        return of_response(outcome, request_id)
    assert outcome is not None
    return of_exception(outcome, url, request_id)
