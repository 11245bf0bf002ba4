"""The error of a call without a good answer."""

from __future__ import annotations

import json
import os
from typing import Any

import httpx

from panglot.terminal.text import brief

CODES = ("code", "error_code", "err_no")
MESSAGES = ("message", "error_msg", "err_msg", "errmsg", "error")
"""The fields that hold code and message in the answers of the platforms."""


class CallError(Exception):
    """A call that failed: the server answered with an error, or did not answer.

    `status` is the HTTP status, 0 where there was no answer. `code` is the server's word for what is wrong (the
    page on error codes lists them), or one of the client: `no_connection`, `connection_lost`, `timeout`,
    `bad_answer`. `request_id` finds the call in the server's log.
    """

    def __init__(
        self, message: str, *, status: int = 0, code: str = "", request_id: str = "", body: bytes = b""
    ) -> None:
        self.message = message
        self.status = status
        self.code = code
        self.request_id = request_id
        self.body = body
        super().__init__(message)

    def __str__(self) -> str:
        """The message, with status, code and request id behind it."""
        known = (str(self.status or ""), self.code, f"request {self.request_id}" if self.request_id else "")
        about = ", ".join(word for word in known if word)
        return f"{self.message} ({about})" if about else self.message


def of_response(response: httpx.Response, request_id: str) -> CallError:
    """The error for an answer of 400 or more, in the server's own words."""
    code, message = _words(response.content)
    status = response.status_code
    message = message or response.reason_phrase or f"status {status}"
    known_id = response.headers.get("x-request-id", request_id)
    return CallError(message, status=status, code=code, request_id=known_id, body=response.content)


def _words(body: bytes) -> tuple[str, str]:
    """Code and message of an error's body, which is Panglot's JSON, a platform's JSON, or text."""
    try:
        value = json.loads(body)
    except ValueError:
        return "", brief(body.decode(errors="replace").strip())
    if isinstance(value, dict) and isinstance(value.get("error"), dict):
        value = value["error"]
    if not isinstance(value, dict):
        return "", brief(str(value))
    return _first(value, CODES), brief(_first(value, MESSAGES) or json.dumps(value))


def _first(value: dict[str, Any], names: tuple[str, ...]) -> str:
    return next((str(value[name]) for name in names if value.get(name) not in (None, "")), "")


def of_exception(error: httpx.HTTPError, url: str, request_id: str) -> CallError:
    """The error for a call without an answer."""
    why = _why(error)
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.UnsupportedProtocol):
        return CallError(f"{url} does not answer: {why}", code="no_connection")
    if isinstance(error, httpx.TimeoutException):
        return CallError(f"{url} did not answer in time", code="timeout", request_id=request_id)
    return CallError(f"the connection to {url} was lost: {why}", code="connection_lost", request_id=request_id)


def _why(error: BaseException) -> str:
    """The reason in the system's words, where the system gave one."""
    inner: BaseException | None = error
    while inner is not None:
        if isinstance(inner, OSError) and inner.errno:
            # By the number: asyncio has other words than the system. Errors about unknown names have negative numbers.
            return os.strerror(inner.errno) if inner.errno > 0 else str(inner.strerror)
        inner = inner.__cause__ or inner.__context__
    return str(error) or type(error).__name__
