"""Which path of a listener leads to which route of which model."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from panglot.web.contract import InferRoute
from panglot.web.models import Model, Models
from panglot.web.v2 import routes
from panglot.web.v2.routes import TensorTarget


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a request goes."""

    model: Model
    route: InferRoute
    told: bytes
    """What the worker is told as the route."""
    cut: int = 0
    """How many bytes of the path the worker is not told: those that lead to the model."""
    tensors: TensorTarget | None = None
    """Of requests with tensors: what their worker is told."""


class Pattern(NamedTuple):
    """Paths with one segment that is not fixed."""

    method: bytes
    start: bytes
    end: bytes
    destination: Destination

    def fits(self, method: bytes, path: bytes) -> bool:
        if method != self.method or not path.startswith(self.start) or not path.endswith(self.end):
            return False
        rest = path[len(self.start) : len(path) - len(self.end)]
        return bool(rest) and b"/" not in rest


class Paths:
    """The routes of all models of a listener. Made anew whenever a model comes or goes; a request looks up one dict."""

    def __init__(self, models: Models) -> None:
        self.posts: dict[bytes, Destination] = {}
        self._others: dict[tuple[bytes, bytes], Destination] = {}
        self._patterns: list[Pattern] = []
        self._folded: list[bytes] = []
        """The beginnings of paths whose rest is matched in lower case."""
        raw: list[bytes] = []
        self.starts = tuple(_starts(models))
        """The models of the listener, each with the paths that its routes begin behind."""
        for start, model in self.starts:
            for route in model.contract.routes:
                self._add(start, model, route)
            if model.contract.fold_case:
                self._folded.append(start)
            if model.contract.raw_paths:
                raw.append(start)
        for model, route, target in routes.routes(models):
            self.posts[route.path.encode()] = Destination(model, route, target.route, tensors=target)
        self.rpc = routes.rpc_targets(models)
        """Where calls of gRPC go, by the model's name and version."""
        self.id_header = models.default.contract.id_header if models.default is not None else b""
        """The name of the request id, besides our own, on paths that are no model's."""
        self.raw = tuple(raw)
        """The beginnings of paths that are matched, and handed to the script, without being decoded."""

    def _add(self, start: bytes, model: Model, route: InferRoute) -> None:
        path, method = start + route.path.encode(), route.method.encode()
        destination = Destination(model, route, (route.target or route.path).encode(), len(start))
        if start and route.path == "/":
            self._add(start, model, dataclasses.replace(route, path="", target=route.target or "/"))
        if route.prefix:
            self._patterns.append(Pattern(method, path, route.suffix.encode(), destination))
        elif method == b"POST":
            self.posts.setdefault(path, destination)
        else:
            self._others.setdefault((method, path), destination)

    def find(self, method: bytes, path: bytes) -> Destination | None:
        """The route of a model that a request is for, if it is for one."""
        destination = self.posts.get(path) if method == b"POST" else self._others.get((method, path))
        if destination is not None:
            return destination
        for start in self._folded:
            if method == b"POST" and path.startswith(start):
                destination = self.posts.get(start + path[len(start) :].lower())
                if destination is not None:
                    return destination
        return next((pattern.destination for pattern in self._patterns if pattern.fits(method, path)), None)

    def at(self, path: bytes) -> list[Destination]:
        """What answers at a path, by whatever method."""
        return [destination for method in (b"POST", b"GET") if (destination := self.find(method, path)) is not None]


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
