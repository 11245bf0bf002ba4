"""From what a script returns to the answer of its container."""

from __future__ import annotations

import json
from typing import Any, List, Sequence, Tuple

from panglot_worker.bodies.codec import Limits
from panglot_worker.bodies.standard_json import StandardJson
from panglot_worker.dialects.base import Answer, warned
from panglot_worker.errors import ClientError, EncodeError, message_of
from panglot_worker.scripts.loading import script_traceback

JSON, TEXT, HTML = "application/json", "text/plain; charset=utf-8", "text/html; charset=utf-8"
INVALID = "Invalid Request"
"""The toolkit's message for an exception without a text."""
FLASK_FAILED = """<!doctype html>
<html lang=en>
<title>500 Internal Server Error</title>
<h1>Internal Server Error</h1>
<p>The server encountered an internal error and was unable to complete your request. Either the server is overloaded \
or there is an error in the application.</p>
"""
NEVER = frozenset((
    "connection", "content-length", "content-type", "date", "keep-alive", "proxy-connection", "server-timing", "te",
    "trailer", "transfer-encoding", "upgrade", "x-request-id",
))  # fmt: skip
"""Headers of a script that are not sent: the server has its own."""


class Refused(ClientError):
    """A request that a default function of a container cannot read or answer. `cause` is why."""

    def __init__(self, cause: BaseException, is_format: bool = False) -> None:
        super().__init__(message_of(cause) or INVALID)
        self.cause = cause
        self.is_format = is_format
        """Whether the content type, or the header Accept, is one that the defaults do not know."""


class Writer:
    """Writes results as the model server does: bytes and text as they are, all else as JSON with an indentation."""

    def __init__(self, limits: Limits, nan: str, strict: bool) -> None:
        self.limits = limits
        self._indented = StandardJson(limits, nan, strict, indent=2)

    def write(self, result: Any, content_type: Any, status: int = 200, lines: Sequence[str] = ()) -> Answer:
        """The answer for what a function returned; a tuple is the body and its content type. Raises EncodeError."""
        if isinstance(result, tuple):
            result, content_type = result[0], result[1]
        elif is_response(result):
            return self._response(result, lines)
        body, warning = self.body(result)
        if len(body) > self.limits.output_bytes:
            raise EncodeError("it is larger than %d bytes" % self.limits.output_bytes)
        return Answer(str(content_type or ""), body, status, (*lines, *warned(warning)))

    def body(self, result: Any) -> Tuple[Any, str]:
        """The bytes of a result, and a warning."""
        if isinstance(result, (bytes, bytearray, memoryview)):
            return result, ""
        if isinstance(result, str):
            return result.encode("utf-8"), ""
        return self._indented.encode(result)

    def _response(self, response: Any, lines: Sequence[str]) -> Answer:
        headers = [(str(name), str(value)) for name, value in dict(response.headers).items()]
        own = ["%s: %s" % (name, value) for name, value in headers if name.lower() not in NEVER]
        kind = response.headers.get("Content-Type") or getattr(response, "mimetype", "") or ""
        return Answer(str(kind), response.get_data(), int(response.status_code), (*own, *lines))


def is_response(result: Any) -> bool:
    """Whether a script answers with a response of Flask's, or of `sagemaker_containers`."""
    return hasattr(result, "get_data") and hasattr(result, "status_code") and hasattr(result, "headers")


def header_lines(headers: Any) -> List[str]:
    """The headers that a script set by its context, as lines."""
    return ["%s: %s" % (name, value) for name, value in headers.items() if str(name).lower() not in NEVER]


# Failures


def is_kind(error: BaseException, name: str) -> bool:
    """Whether an exception is of a class of the toolkit's, the original's or ours, by the class's name."""
    return any(kind.__name__ == name for kind in type(error).__mro__)


def as_text(status: int, message: str) -> Answer:
    return Answer(TEXT, (message or INVALID).encode("utf-8", "replace"), status)


def as_model_server(status: int, message: str) -> Answer:
    """An error in the JSON of the model server."""
    value = {"code": status, "type": "InternalServerException", "message": message}
    return Answer(JSON, json.dumps(value, indent=2, ensure_ascii=False).encode("utf-8", "replace"), status)


def as_flask(status: int, error: BaseException) -> Answer:
    """An error of the older containers, which are a Flask application."""
    if status == 500:
        return Answer(HTML, FLASK_FAILED.encode(), 500)
    value = {"error": type(error).__name__, "error-message": message_of(error), "stack-trace": ""}
    return Answer(JSON, json.dumps(value).encode(), status)


def with_traceback(answer: Answer, error: BaseException) -> Answer:
    """The toolkit's answer as it is on the platform, where clients get the traceback. Only for development."""
    if answer.content_type != TEXT:
        return answer
    return answer._replace(body=b"%b\n%b" % (bytes(answer.body), script_traceback(error).encode("utf-8", "replace")))
