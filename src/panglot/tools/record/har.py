"""A recording as HAR 1.2, which browsers and HTTP tools read."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl

from panglot import __version__
from panglot.recording.recording import Pair, RecordedMessage, Recording


def lines(recording: Recording) -> Iterator[str]:
    """The document, in pieces: a pair at a time, so that memory does not grow with the recording."""
    creator = json.dumps({"name": "panglot", "version": __version__})
    yield f'{{"log": {{"version": "1.2", "creator": {creator}, "entries": ['
    began, service = recording.head.get("began"), recording.head.get("service")
    start = float(began) if isinstance(began, int | float) else 0.0
    base = service.rstrip("/") if isinstance(service, str) and service.startswith("http") else "http://localhost"
    separator = "\n"
    for pair in recording.pairs():
        yield separator + json.dumps(_entry(pair, start, base))
        separator = ",\n"
    yield "\n]}}\n"


def _entry(pair: Pair, began: float, base: str) -> dict[str, Any]:
    request, answer = pair.request, pair.answer
    waited = round(pair.first_byte * 1000, 3)
    entry = {
        "startedDateTime": datetime.fromtimestamp(began + pair.at, UTC).isoformat(),
        "time": round(pair.took * 1000, 3),
        "request": {
            "method": request.method,
            "url": base + request.target,
            "httpVersion": "HTTP/1.1",
            "headers": _named(request.headers),
            "queryString": _named(parse_qsl(request.target.partition("?")[2], keep_blank_values=True)),
            "cookies": [],
            "headersSize": -1,
            "bodySize": request.size,
        },
        "response": {
            "status": answer.status,
            "statusText": answer.reason,
            "httpVersion": "HTTP/1.1",
            "headers": _named(answer.headers),
            "cookies": [],
            "content": {"size": answer.size, "mimeType": answer.header("content-type"), **_text(answer)},
            "redirectURL": answer.header("location"),
            "headersSize": -1,
            "bodySize": answer.size,
        },
        "cache": {},
        "timings": {"send": 0, "wait": waited, "receive": max(0.0, round(pair.took * 1000 - waited, 3))},
    }
    if request.body:
        entry["request"]["postData"] = {"mimeType": request.header("content-type"), **_text(request)}  # type: ignore[index]
    if pair.problem:
        entry["comment"] = pair.problem
    return entry


def _text(message: RecordedMessage) -> dict[str, str]:
    try:
        return {"text": message.body.decode()}
    except UnicodeDecodeError:
        return {"text": base64.b64encode(message.body).decode(), "encoding": "base64"}


def _named(pairs: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in pairs]
