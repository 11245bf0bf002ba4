"""What a platform's clients rely on: its paths, and how it answers failures."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from panglot.engine.call import Fault

PUBLIC, INFER, ADMIN, METRICS, CONTROL = "public", "infer", "admin", "metrics", "control"
"""Who may call a route: anyone; whoever may use the model; whoever runs the server."""


class ErrorAnswer(NamedTuple):
    """The answer for a fault as a platform writes it. The status may differ from the fault's own."""

    status: int
    content_type: bytes
    body: bytes


ErrorWriter = Callable[[Fault, str], ErrorAnswer]
"""Makes the answer for a fault and a request id. docs/reference/http.md lists the codes of faults."""


@dataclass(frozen=True)
class InferRoute:
    """A POST, or GET, that reaches the script. With `prefix`, one more path segment follows, which the worker reads."""

    path: str
    name: str
    access: str = INFER
    prefix: bool = False
    suffix: str = ""
    """What follows that segment."""
    target: str = ""
    """What the worker is told instead of the path."""
    parameter: str = "name"
    """What that further segment is called in /openapi.json."""
    takes: tuple[str, ...] = ()
    """The media types of its body, where that is one file whatever the script says."""
    gives: str = ""
    """The media type of its answers, likewise."""
    method: str = "POST"
    whole_head: bool = False
    """Whether the worker is told all headers, and the client's address."""
    lane: str = ""
    """What it shares with the routes whose requests may be in one batch with its own."""
    spooled: bool = False
    """Whether its body goes to a file, within the limits of videos; the script is given that file's path."""
    bare: bool = False
    """Whether it takes no body."""
    endless: bool = False
    """Whether its stream ends only when the server stops."""
    error: ErrorWriter | None = None
    """How this route answers a fault, where its contract does it otherwise."""
    request: Mapping[str, Any] | None = None
    """The schema of its body, where that is JSON in a form of the platform's own."""
    response: Mapping[str, Any] | None = None
    """The schema of its answers, likewise."""


@dataclass(frozen=True)
class Page:
    """A GET, or POST, answered by the front itself: from the model and the request, a response.

    The pages that every server has are given the front in place of a model. A segment `{name}` stands for any.
    """

    path: str
    access: str
    answer: Callable[[Any, Request], Response | Awaitable[Response]]
    unless: str = ""
    """A media type. A request that accepts it gets the neutral page of this path instead, by that page's access."""
    method: str = "GET"


def neutral_error(fault: Fault, request_id: str) -> ErrorAnswer:
    error = {"code": fault.code, "message": fault.message, "request_id": request_id}
    if fault.details:
        error = {**error, **fault.details, **error}
    return ErrorAnswer(fault.status, b"application/json", _json({"error": error}))


def v2_error(fault: Fault, request_id: str) -> ErrorAnswer:
    return ErrorAnswer(fault.status, b"application/json", _json({"error": fault.message}))


def _json(value: Any) -> bytes:
    # A script's message may hold lone surrogates, which UTF-8 cannot.
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")


@dataclass(frozen=True)
class View:
    """A page with a script of its own, in `folder` where it is not ours. Links have `path` relative to the root."""

    path: str
    title: str
    script: str
    folder: Path | None = None


@dataclass(frozen=True)
class Listener:
    """A further port of the package, with routes of its own."""

    port: int
    contract: Contract


@dataclass(frozen=True)
class Contract:
    """The native routes of a dialect, and how its platform answers an error."""

    routes: tuple[InferRoute, ...]
    error: ErrorWriter
    pages: tuple[Page, ...] = ()
    """Pages of the platform; they win over neutral routes of the same path."""
    unknown: ErrorWriter = neutral_error
    """How 404 and 405 are answered outside the neutral routes."""
    metrics: Callable[[Any], str] | None = None
    """The platform's own series for /metrics, given the model."""
    counters: Mapping[str, str] = field(default_factory=dict)
    """What the dialect's workers count, by name, with what it means."""
    fold_case: bool = False
    """Whether paths are matched in lower case."""
    id_header: bytes = b""
    """The platform's name, in lower case, for what others call x-request-id; taken from clients and sent back."""
    refuses_in_drain: bool = False
    """Whether a request that comes while the server stops gets 503; otherwise it is still answered."""
    raw_paths: bool = False
    """Whether paths are matched, and handed to the script, without being decoded."""
    listeners: tuple[Listener, ...] = ()
    """Further ports."""
    views: tuple[View, ...] = ()
    """Pages of the dialect's own, whose scripts lie in a folder of its own."""
    live: Callable[[Any], Any] | None = None
    """What these pages show, as JSON, given the model; it comes to them once a second."""
    runs_with_server: Callable[[Any, Any], Coroutine[Any, Any, None]] | None = None
    """What runs for as long as the server does, given the model and the rules of access."""
