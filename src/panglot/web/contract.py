"""The contract of a platform with its clients: its paths, and how it answers failures."""

from __future__ import annotations

import functools
import hmac
import json
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from panglot.engine.call import Fault
from panglot.web.job_contract import JobRoute as JobRoute
from panglot.web.path_template import is_template, template

if TYPE_CHECKING:
    from panglot.web.models import ModelAdministration

PUBLIC, INFER, ADMIN, METRICS, CONTROL = "public", "infer", "admin", "metrics", "control"
JOBS = "jobs"
"""Who may call a route. PUBLIC: anyone. INFER: users of the model. JOBS: its users, by jobs. ADMIN, METRICS: operators
of the server. CONTROL: operators who change its models. The token of clients opens all but CONTROL; a key opens what
its entry says."""


class ErrorAnswer(NamedTuple):
    """The answer for a fault as a platform writes it. The status may differ from the fault's own."""

    status: int
    content_type: bytes
    body: bytes
    headers: tuple[bytes, ...] = ()
    """Further header lines, such as `b"x-error-code: 7"`."""

    @property
    def head(self) -> bytes:
        """The content type and the further lines, as the head of a worker's reply has them."""
        return b"\0".join((self.content_type, *self.headers)) if self.headers else self.content_type


ErrorWriter = Callable[[Fault, str], ErrorAnswer]
"""Makes the answer for a fault and a request id. docs/reference/http.md lists the codes of faults."""


@dataclass(frozen=True)
class ModelName:
    """Where a request names its model. The route is then shared by all models of the server that declare it.

    The front looks in the free segment, in the query, in the header, and in the JSON body, as far as each is declared,
    and takes the first name it finds. A name that no model with this route has is answered 404 by `Contract.unknown`,
    with the code `no_model` or `no_version` and the name in the fault's details. A request without a name is for the
    default model, or for the only one.
    """

    segment: str = ""
    """A free segment of the path that is the model's name."""
    version: str = ""
    """A free segment that is the model's version, on those paths that have it."""
    query: str = ""
    """A parameter of the query that is the model's name."""
    header: str = ""
    """A header, in lower case, that is the model's name."""
    field: str = ""
    """A top-level field of a JSON body that is the model's name. It is read at the root alone: a path behind the
    model's own has named it already. The path has no free segment. A name
    that no model has is answered by the route's own writer of errors."""
    worker_checks: bool = False
    """Whether the worker refuses a field that names another model. Then no body is read by the front of a server that
    has one model."""


@dataclass(frozen=True)
class InferRoute:
    """A route that reaches the script.

    `{name}` in its path stands for a free segment, or for a part of one; `{name...}` at the end for the rest of the
    path with its slashes (`panglot.web.path_template`). The worker finds their values in `Request.head.path_values`,
    and the method in `Request.head.method`. A path without free segments is found before all paths with some; of these
    the one with more fixed text before its first free segment, then with more in all, then the first declared.
    """

    path: str
    name: str
    """What it is counted as in the metrics."""
    access: str = INFER
    methods: tuple[str, ...] = ("POST",)
    """The methods it takes. Where it declares OPTIONS, `--cors-origin` still answers the questions of browsers."""
    target: str = ""
    """The route that the worker gets instead of the path."""
    model: ModelName | None = None
    """Where requests name the model, if they do; else the route leads to the model it is a route of."""
    takes: tuple[str, ...] = ()
    """The media types of its body, where that is one file whatever the script says."""
    gives: str = ""
    """The media type of its answers, likewise."""
    whole_head: bool = False
    """Whether the worker gets all headers, and the client's address."""
    lane: str = ""
    """Requests to routes of the same lane may share a batch."""
    spooled: bool = False
    """Whether its body goes to a file, within the limits of videos; the script is given that file's path. A job of the
    route has its body in memory instead, within the limits of bodies: its head names the job."""
    without_body: bool = False
    """Whether it takes no body."""
    endless: bool = False
    """Whether its stream ends only when the server stops."""
    error: ErrorWriter | None = None
    """How this route answers a fault, where its contract does it otherwise."""
    request: Mapping[str, Any] | None = None
    """The schema of its body, where that is JSON in a form of the platform's own."""
    response: Mapping[str, Any] | None = None
    """The schema of its answers, likewise."""
    job: JobRoute | None = None
    """How its requests become jobs, where the platform defines that; see `panglot.web.job_contract`."""

    @property
    def worker_route(self) -> str:
        """The route that the worker gets."""
        return self.target or self.path

    @property
    def fields(self) -> tuple[str, ...]:
        """The top-level fields of a JSON body that the front reads. A route without any costs nothing."""
        return (self.model.field,) if self.model is not None and self.model.field else ()

    @property
    def is_free(self) -> bool:
        """Whether its path has free segments."""
        return is_template(self.path)

    def sample(self, model: str, version: str = "1") -> str:
        """A path of this route, for the model of this name."""
        values = {}
        if self.model is not None:
            values = {self.model.segment: quote(model), self.model.version: quote(version)}
        return template(self.path).fill(**values)


@dataclass(frozen=True)
class Page:
    """A route that the front answers itself: from the model and the request, a response.

    The pages that every server has are given the front in place of a model. Paths have free segments as those of an
    InferRoute have; `request.path_params` holds their values.
    """

    path: str
    access: str
    answer: Callable[[Any, Request], Response | Awaitable[Response]]
    unless: str = ""
    """A media type. A request that accepts it gets the neutral page of this path instead, by that page's access."""
    methods: tuple[str, ...] = ("GET",)
    """The methods it takes. HEAD is answered wherever GET is."""
    model: ModelName | None = None
    """Where requests name the model that the page is about, as on an InferRoute; headers and bodies are not read."""


class RouteRefused(Exception):
    """Raised by a page or an AdminRoute: the fault is answered in the manner of the platform, by `Contract.unknown`."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


@dataclass(frozen=True)
class AdminRoute:
    """A route that loads, unloads or scales models of the dialect, or tells of all of them.

    It is at the root, whichever model of the dialect is the default. `CONTROL` needs `--admin` and its token; a route
    that changes nothing may have another access. What `answer` raises as RouteRefused is answered so.
    """

    path: str
    answer: Callable[[ModelAdministration, Request], Response | Awaitable[Response]]
    methods: tuple[str, ...] = ("POST",)
    access: str = CONTROL


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


class RequestLine(NamedTuple):
    """The method and the decoded path of a request."""

    method: bytes
    path: bytes


@dataclass(frozen=True)
class TokenForm:
    """A form in which the platform's clients carry the token, besides `Authorization: Bearer TOKEN`."""

    scheme: str = ""
    """The word before the token, such as `Api-Key`, in any case; empty: the whole value is the token."""
    header: str = "authorization"
    """The header, in lower case. Where clients need a token, no script gets a header that carries it."""

    def token(self, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
        """The token that a request carries in this form; empty where there is none."""
        wanted, before = self.header.encode(), self.scheme.lower().encode()
        for name, value in headers:
            if name == wanted:
                word, _, rest = value.partition(b" ")
                given = value.strip() if not before else rest.strip() if word.lower() == before else b""
                if given:
                    return given
        return b""

    def shown(self, known: bytes, line: RequestLine, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
        """The token that a request shows in this form; empty where it shows none. `known` is that of the server."""
        return self.token(headers)


@dataclass(frozen=True)
class SignatureForm(TokenForm):
    """A form in which clients sign their request with the token instead of sending it."""

    signature: Callable[[bytes, RequestLine, Mapping[bytes, bytes]], bytes] = lambda token, line, headers: b""
    """What a client with this token sends in place of it; empty where the request has not what is signed."""

    def shown(self, known: bytes, line: RequestLine, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
        """The token of the server, where the signature is one by it."""
        given = self.token(headers)
        expected = self.signature(known, line, dict(headers)) if known and given else b""
        return known if expected and hmac.compare_digest(given, expected) else b""


@dataclass(frozen=True)
class View:
    """A page with a script of its own, in `folder` where it is not ours. Links have `path` relative to the root."""

    path: str
    title: str
    script: str
    folder: Path | None = None


RpcErrorWriter = Callable[[Fault], tuple[int, str]]
"""Makes the status of gRPC, and the sentence, for a fault."""


@dataclass(frozen=True)
class RpcMethod:
    """A method of a gRPC service, with one message of the client and one answer, or with `streams` many answers.

    It reaches the script: the worker's half is given the message as the body of a request whose route is `target`, and
    whose answer, or each part of it, is a message. A message of more than 64 KiB may not be compressed. With `answer`
    the front itself answers, for the default model or the first that has the service.
    """

    name: str
    takes: str
    """The type of its message: one of `RpcService.messages`, or `google.protobuf.Empty`."""
    gives: str
    """The type of its answers, likewise."""
    model_field: int = 0
    """The number of the field that names the model, and must be among the first 64 KiB; 0: the default is meant."""
    version_field: int = 0
    """The number of the field that names the model's version; 0: there is none."""
    streams: bool = False
    target: str = ""
    """The route that the worker gets; empty: `/PACKAGE.SERVICE/METHOD`."""
    lane: str = ""
    """As of an InferRoute."""
    access: str = INFER
    answer: Callable[[Any, bytes], bytes] | None = None
    """Makes the answer from the model and the client's message, where no script does."""
    administer: Callable[[ModelAdministration, bytes], Awaitable[bytes]] | None = None
    """The same for a method that administers the models of the dialect, as an AdminRoute does. It may raise
    RouteRefused, and ValueError for a message that cannot be read."""
    failure: Callable[[int, str], bytes] | None = None
    """With this a client sends any number of messages, each of which is answered in full before the next one. It makes
    the answer that tells of a failure, from the status and the sentence: a failed message does not end the call."""


@dataclass(frozen=True)
class RpcService:
    """A gRPC service of the platform. It is at `--grpc-port`, and clients find its descriptors by reflection."""

    package: str
    name: str
    methods: tuple[RpcMethod, ...]
    messages: Mapping[str, tuple[str, ...]]
    """By type: its fields, each as `name number type`, with `repeated` or `map` (from text) before the type."""
    error: RpcErrorWriter | None = None
    """How a fault is answered, where the status of HTTP does not tell it."""

    @property
    def full_name(self) -> str:
        return f"{self.package}.{self.name}"

    def path(self, method: RpcMethod) -> str:
        """What clients call."""
        return f"/{self.full_name}/{method.name}"


@dataclass(frozen=True)
class Listener:
    """A further port of the package, with routes of its own."""

    port: int
    contract: Contract
    shared: bool = False
    """Whether models that declare the same port share it, as models share the server's first port: a platform's port
    for administration, say. Else each package needs a port of its own."""


@dataclass(frozen=True)
class Contract:
    """The native routes of a dialect, and how its platform answers an error."""

    routes: tuple[InferRoute, ...]
    error: ErrorWriter
    pages: tuple[Page, ...] = ()
    """Pages of the platform; they win over neutral routes of the same path."""
    admin: tuple[AdminRoute, ...] = ()
    """Routes that administer the models of the dialect."""
    unknown: ErrorWriter = neutral_error
    """How 404 and 405 are answered outside the neutral routes."""
    metrics: Callable[[Any], str] | None = None
    """The platform's own series for /metrics, given the model."""
    counters: Mapping[str, str] = field(default_factory=dict)
    """What the dialect's workers count, by name, with what it means."""
    model_name: str = ""
    """A further name by which the platform's clients name this model on routes with a ModelName."""
    model_version: str = ""
    """A further version, likewise."""
    services: tuple[RpcService, ...] = ()
    """The services of gRPC."""
    token_forms: tuple[TokenForm, ...] = ()
    """Further forms in which clients may carry the token on its routes and pages."""
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

    @functools.cached_property
    def token_headers(self) -> frozenset[bytes]:
        """The headers that may carry the token, besides Authorization."""
        return frozenset(form.header.encode() for form in self.token_forms) - {b"authorization"}
