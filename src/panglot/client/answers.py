"""Answers as values: parsed JSON, text, or bytes; and the parts of a stream as they come."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx

from panglot.client.errors import CallError, of_response

JSON_LINES = "application/x-ndjson"
EVENTS = "text/event-stream"
ACCEPT = f"application/json, {JSON_LINES}, */*"
STAGE = re.compile(r"([\w.-]+);dur=([\d.]+)")


@dataclass(frozen=True)
class CallAnswer:
    """A good answer with all that is known about it. `times_ms` has the milliseconds of each stage on the server."""

    value: Any
    status: int
    content_type: str
    request_id: str
    times_ms: dict[str, float] = field(default_factory=dict)
    warning: str = ""
    """What the server remarked on the answer, such as NaN that became null."""


def answer_of(response: httpx.Response) -> CallAnswer:
    """The answer of a response that has been read. Raises CallError for one of 400 or more."""
    headers = response.headers
    request_id = headers.get("x-request-id", "")
    if response.status_code >= 400:
        raise of_response(response, request_id)
    kind = kind_of(response)
    times = {name: float(ms) for name, ms in STAGE.findall(headers.get("server-timing", ""))}
    value = list(_parts(kind, response.text.split("\n"))) if is_stream(kind) else _value(kind, response)
    return CallAnswer(value, response.status_code, kind, request_id, times, headers.get("x-panglot-warning", ""))


def kind_of(response: httpx.Response) -> str:
    return str(response.headers.get("content-type", "")).partition(";")[0].strip().lower()


def is_stream(kind: str) -> bool:
    return kind in (JSON_LINES, EVENTS)


def _value(kind: str, response: httpx.Response) -> Any:
    """The value of a body, by its type. Raises CallError for a body that should be JSON and is not."""
    if kind.endswith("json"):
        try:
            return json.loads(response.content) if response.content else None
        except ValueError as error:
            about = response.headers.get("x-request-id", "")
            raise CallError(f"the answer is no JSON: {error}", status=response.status_code, code="bad_answer",
                            request_id=about, body=response.content) from None  # fmt: skip
    if kind == "text/html":
        # One platform sends its JSON with this type.
        return _json_or_text(response.text)
    return response.text if kind.startswith("text/") else response.content


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def parser_of(response: httpx.Response) -> StreamParser | None:
    """The parser for the lines of a stream; None for a response that is read whole: an error, or no stream."""
    kind = kind_of(response)
    return StreamParser(kind) if response.status_code < 400 and is_stream(kind) else None


class StreamParser:
    """Takes the lines of a stream, and gives a value for every part that is complete."""

    def __init__(self, kind: str) -> None:
        self.is_events = kind == EVENTS
        self.data: list[str] = []

    def feed(self, line: str) -> Iterator[Any]:
        """The values that this line completes: none or one."""
        line = line.rstrip("\r")
        if not self.is_events:
            if line.strip():
                yield _json_or_text(line)
        elif line.startswith("data:"):
            self.data.append(line[5:].removeprefix(" "))
        elif not line and self.data:
            # An empty line ends an event. An event that is cut off before this line is dropped, as in the standard.
            text = "\n".join(self.data)
            self.data.clear()
            yield _json_or_text(text)


def _parts(kind: str, lines: list[str]) -> Iterator[Any]:
    parser = StreamParser(kind)
    for line in lines:
        yield from parser.feed(line)
