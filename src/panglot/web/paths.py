"""Which path of a listener leads to which route of which model."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode

from panglot.engine.call import Fault
from panglot.terminal.text import visible
from panglot.web.contract import InferRoute, ModelName, RpcMethod, RpcService
from panglot.web.models import Model, Models, NamedModels
from panglot.web.path_template import PathTemplate, template
from panglot.web.v2 import routes
from panglot.web.v2.routes import TensorTarget
from panglot_worker.line import wire

Headers = Iterable[tuple[bytes, bytes]]
"""Headers of a request, with names in lower case."""
RESERVED = (b"/v2/health", b"/v2/models", b"/v2/repository", b"/metrics")
"""The beginnings of paths that no free segment stands for."""


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a request goes."""

    model: Model
    route: InferRoute
    worker_route: bytes
    """The route that the worker gets."""
    cut: int = 0
    """How many bytes of the path the worker does not get: the beginning that leads to the model."""
    tensors: TensorTarget | None = None
    """What the worker gets for a request with tensors."""
    further: bytes = b""
    """The last fields of the head that the worker gets, where the method is not POST or a segment is free."""


class RpcDestination(NamedTuple):
    """Where a call of a dialect's gRPC service goes."""

    model: Model
    route: InferRoute
    """It has no path; its name is what the call is counted as."""
    head: bytes
    """What the worker gets behind the request's id, of a call that is not traced."""


class RpcRoute:
    """A method of a gRPC service, and the models that have it."""

    def __init__(self, service: RpcService, method: RpcMethod) -> None:
        self.service = service
        self.method = method
        self.path = service.path(method)
        self.models: NamedModels[RpcDestination] = NamedModels()

    def add(self, model: Model, alone: Collection[str], default: bool) -> None:
        method, path = self.method, self.path
        route = InferRoute("", f"grpc {method.name}", method.access, target=method.target or path, lane=method.lane)
        worker_route = route.worker_route.encode()
        head = wire.Head(route=worker_route, content_type=b"application/grpc", path=path.encode()).pack()
        self.models.add(RpcDestination(model, route, head), model, alone, default)


class UnknownModel(NamedTuple):
    """Why a path leads nowhere although a route has it: the request names a model that is not there."""

    model: Model
    """The first model with this route, whose platform answers."""
    fault: Fault


class Pattern:
    """The paths of one route, at one beginning, that are found by more than a look into a dict.

    Several models may share the route; the request then says which of them is meant.
    """

    def __init__(self, start: bytes, route: InferRoute, template: PathTemplate) -> None:
        self.start = start
        self.template = template
        self.methods = frozenset(method.encode() for method in route.methods)
        self.is_wide = template.fixed[0] <= 1
        """Whether its first segment is free."""
        self.name = route.model
        self.models: NamedModels[Destination] = NamedModels()

    def match(self, method: bytes, path: bytes) -> dict[str, bytes] | None:
        """The free segments of a request that is for this route; None where it is not."""
        if method not in self.methods or not path.startswith(self.start):
            return None
        return self.template.match(path[len(self.start) :])


def model_named(name: ModelName | None, values: Mapping[str, bytes], query: bytes, headers: Headers) -> tuple[str, str]:
    """The name and version of the model that a request names before its body; empty: it names none."""
    if name is None:
        return "", ""
    given = values.get(name.segment, b"").decode("utf-8", "replace")
    if not given and name.query and query:
        given = dict(parse_qsl(query.decode("latin-1"))).get(name.query, "")
    if not given and name.header:
        given = dict(headers).get(name.header.encode(), b"").decode("utf-8", "replace")
    return given, values.get(name.version, b"").decode("utf-8", "replace")


def further_fields(method: bytes, values: Mapping[str, bytes]) -> bytes:
    """The fields `method` and `segments` of `panglot_worker.line.wire.Head`."""
    return b"%b\0%b" % (method, urlencode(values).encode())


class Paths:
    """The routes of all models of a listener. Made anew whenever a model comes or goes.

    A request for a path without free segments looks up one dict. Others try the patterns of one model, and those of
    the root.
    """

    def __init__(self, models: Models, preflights: bool = False) -> None:
        self.posts: dict[bytes, Destination] = {}
        self._others: dict[bytes, dict[bytes, Destination]] = {}
        """By method, the destinations of paths."""
        self._patterns: dict[bytes, list[Pattern]] = {}
        """By the beginning of their paths."""
        self._folded: list[bytes] = []
        """The beginnings of paths whose rest is matched in lower case."""
        self._fields: dict[str, NamedModels[Destination]] = {}
        """By path: the models that share a route at the root whose requests name their model in the body."""
        raw: list[bytes] = []
        self._preflights = preflights
        """Whether OPTIONS is answered by the front, which tells browsers what they may call."""
        self.pages: tuple[tuple[PathTemplate, tuple[str, ...]], ...] = ()
        """The pages of the listener with their methods: no route with a free first segment hides one. From the app."""
        self._models = models
        self.starts = tuple(_starts(models))
        """The models of the listener, each with the paths that its routes begin behind."""
        for start, model in self.starts:
            for route in model.contract.routes:
                self._add(start, model, route)
            if model.contract.fold_case:
                self._folded.append(start)
            if model.contract.raw_paths:
                raw.append(start)
        for model in models:
            for route in model.contract.routes:
                if route.model is not None:
                    self._add(b"", model, route)
        # These replace a native route of the same path: /v2/models is reserved.
        for model, route, target in routes.routes(models):
            self.posts[route.path.encode()] = Destination(model, route, target.route, tensors=target)
        self.rpc = routes.rpc_targets(models)
        """Where inferences by the Open Inference Protocol over gRPC go, by the model's name and version."""
        self.rpc_routes = self._rpc_routes(models)
        """The methods of the dialects' own gRPC services, by path."""
        self.id_header = models.default.contract.id_header if models.default is not None else b""
        """The name of the request id, besides our own, on paths that are no model's."""
        self.raw = tuple(raw)
        """The beginnings of paths that are matched, and handed to the script, without being decoded."""

    def _rpc_routes(self, models: Models) -> dict[str, RpcRoute]:
        methods: dict[str, RpcRoute] = {}
        for model in (*filter(None, [models.default]), *models):
            for service in model.contract.services:
                for method in service.methods:
                    route = methods.setdefault(service.path(method), RpcRoute(service, method))
                    route.add(model, models.names_leading_to(model), models.default is model)
        return methods

    def _add(self, start: bytes, model: Model, route: InferRoute) -> None:
        if start and route.path == "/":
            self._add(start, model, dataclasses.replace(route, path="", target=route.target or "/"))
        if route.model is not None and route.fields and (start or (route.model.worker_checks and self._is_only(model))):
            # The path has named the model already, or there is no other to name.
            route = dataclasses.replace(route, model=None)
        if route.is_free or (route.model is not None and not route.fields):
            self._share(start, model, route)
            return
        path = start + route.path.encode()
        destination = Destination(model, route, route.worker_route.encode(), len(start))
        if route.fields:
            shared = self._fields.setdefault(route.path, NamedModels())
            shared.add(destination, model, self._models.names_leading_to(model), self._models.default is model)
        for method in self._methods(route):
            # The first one stays: the default model comes before all others, and its first route before its last.
            if method == b"POST":
                self.posts.setdefault(path, destination)
            else:
                further = dataclasses.replace(destination, further=further_fields(method, {}))
                self._others.setdefault(method, {}).setdefault(path, further)

    def _is_only(self, model: Model) -> bool:
        """Whether a model is the default and the only one. Without a default, nothing at the root leads to it."""
        return len(self._models) == 1 and self._models.default is model

    def _methods(self, route: InferRoute) -> Iterator[bytes]:
        for method in route.methods:
            if method != "OPTIONS" or not self._preflights:
                yield method.encode()

    def _share(self, start: bytes, model: Model, route: InferRoute) -> None:
        """Add a model to the pattern of one of its routes."""
        methods = tuple(method.decode() for method in self._methods(route))
        route = route if methods == route.methods else dataclasses.replace(route, methods=methods)
        wanted = template(route.path, model.contract.fold_case)
        patterns = self._patterns.setdefault(start, [])
        for pattern in patterns:
            same = pattern.template is wanted and pattern.name == route.model
            if same and pattern.methods == frozenset(map(str.encode, methods)):
                break
        else:
            pattern = Pattern(start, route, wanted)
            patterns.append(pattern)
            patterns.sort(key=lambda pattern: pattern.template.fixed, reverse=True)
        alone, default = self._models.names_leading_to(model), self._models.default is model
        destination = Destination(model, route, route.worker_route.encode(), len(start))
        # Behind the model's own path, and where requests name no model, this one answers without a name.
        pattern.models.add(destination, model, alone, default or bool(start) or route.model is None)

    def find(self, method: bytes, path: bytes, query: bytes = b"", headers: Headers = ()) -> Destination | None:
        """The route of a model that a request is for, if it is for one."""
        if method == b"POST":
            destination = self.posts.get(path)
        else:
            others = self._others.get(method)
            destination = others.get(path) if others is not None else None
        if destination is not None:
            return destination
        for start in self._folded:
            if method == b"POST" and path.startswith(start):
                destination = self.posts.get(start + path[len(start) :].lower())
                if destination is not None:
                    return destination
        if not self._patterns or path.startswith(RESERVED):
            return None
        fit = self._fit(method, path)
        if fit is None:
            return None
        pattern, values = fit
        destination = pattern.models.find(*model_named(pattern.name, values, query, headers))
        return destination and dataclasses.replace(destination, further=further_fields(method, values))

    def _fit(self, method: bytes, path: bytes) -> tuple[Pattern, dict[str, bytes]] | None:
        """The pattern that a request fits, and its free segments: those of a model's own paths before the root's."""
        for pattern in self._near(path):
            values = pattern.match(method, path)
            if values is not None:
                # A free first segment fits nearly every path, those of pages too.
                return None if pattern.is_wide and self._is_page(method, path) else (pattern, values)
        return None

    def named(self, route: InferRoute, fields: Mapping[str, Any]) -> Destination | Fault:
        """The destination of a request whose body names its model, by the fields that the front has read of it."""
        name = fields.get(route.fields[0])
        name = "" if name is None else name
        shared = self._fields.get(route.path)
        destination = shared.find(name) if shared is not None and isinstance(name, str) else None
        return destination or unknown_model(self._models, name if isinstance(name, str) else "", "")

    def _is_page(self, method: bytes, path: bytes) -> bool:
        wanted = method.decode("latin-1")
        return any(wanted in methods and page.match(path) is not None for page, methods in self.pages)

    def _near(self, path: bytes) -> Iterator[Pattern]:
        """The patterns that a path may fit: those of the model whose paths begin so, then those of the root."""
        if path.startswith(b"/models/"):
            parts = path.split(b"/", 5)
            for count in (5, 3):
                if len(parts) >= count:
                    yield from self._patterns.get(b"/".join(parts[:count]), ())
        yield from self._patterns.get(b"", ())

    def at(self, path: bytes, query: bytes = b"") -> dict[str, Destination]:
        """The destinations of a path, by method."""
        methods = {b"POST": None, **dict.fromkeys(self._others)}
        for pattern in self._near(path):
            methods |= dict.fromkeys(pattern.methods)
        ways = {method.decode(): self.find(method, path, query) for method in methods}
        return {method: destination for method, destination in ways.items() if destination is not None}

    def missing(self, method: bytes, path: bytes, query: bytes = b"", headers: Headers = ()) -> UnknownModel | None:
        """Why a request has no answer, where it names a model that its route does not have; else None."""
        fit = self._fit(method, path) if self._patterns and not path.startswith(RESERVED) else None
        if fit is None:
            return None
        pattern, values = fit
        named = model_named(pattern.name, values, query, headers)
        if pattern.models.find(*named) is not None:
            return None
        return UnknownModel(pattern.models.first.model, unknown_model(self._models, *named))


def unknown_model(models: Models, name: str, version: str) -> Fault:
    """Why a request that names a model by a native route is not answered by it."""
    shown = visible(name)[:128]
    details = {"model": shown, **({"version": visible(version)[:128]} if version else {})}
    if not name:
        return Fault(404, "no_model", f"this server has several models: name one of {_names(models)}")
    if name in models.loading() and models.get(name) is None:
        return Fault(503, "loading", f"model '{shown}' is still loading; try again later", 2)
    known = [model.contract.model_version or model.version for model in models if name in model.names]
    if known and version and models.get(name, version) is None:
        message = f"model '{shown}' has no version '{details['version']}'; it has {', '.join(known)}"
        return Fault(404, "no_version", message, details=details)
    if models.get(name, version) is not None:
        return Fault(404, "no_model", f"model '{shown}' does not answer at this path", details=details)
    return Fault(404, "no_model", f"there is no model '{shown}' here; there is {_names(models)}", details=details)


def _names(models: Models) -> str:
    return ", ".join(models.names) or "none"


def _starts(models: Models) -> Iterator[tuple[bytes, Model]]:
    """The models of a listener, each with the path that its routes begin behind."""
    if models.default is not None:
        yield b"", models.default
    # A path with a brace would be read as a pattern; only a package that is served alone can have such a name.
    for name in (name for name in models.names if "{" not in name):
        newest = models.get(name)
        if newest is not None:
            yield f"/models/{name}".encode("utf-8", "replace"), newest
    for model in (model for model in models if "{" not in model.name):
        yield f"/models/{model.name}/versions/{model.version}".encode("utf-8", "replace"), model
