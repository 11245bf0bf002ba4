"""Which functions of a script are endpoints."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Tuple

from panglot_worker.dialects.base import Package
from panglot_worker.dialects.plain.endpoints import PREDICT, Endpoint
from panglot_worker.errors import ScriptError
from panglot_worker.hints.functions import RouteShape
from panglot_worker.scripts.names import routes_of

Hooks = Mapping[str, Callable[..., Any]]


def endpoints(owner: Any, module: Any, hooks: Hooks, package: Package) -> List[Endpoint]:
    """The endpoints of a script; `/predict` is the first where there is one. Raises ScriptError."""
    endpoints = list(_predict(hooks))
    table: Dict[str, Dict[str, Any]] = package.options.get("routes", {})
    endpoints += [_routed((owner, module), route, about, package.script) for route, about in table.items()]
    if not endpoints and not package.options.get("chat") and not package.options.get("embed"):
        raise ScriptError(
            "there is no predict in it",
            package.script,
            fix="define predict(request), or a class Model with predict(item) or predict_batch(items)",
        )
    known = {about["path"] for about in table.values()}
    for path, name in [*_decorated(type(owner)), *_decorated(module)]:
        if path not in known:
            problem = "the route %s of %s was not seen when the script was read" % (path, name)
            fix = 'give it a line in panglot.toml: [routes] "%s" = "%s"' % (path, name)
            raise ScriptError(problem, package.script, fix=fix)
    for endpoint in endpoints:
        endpoint.check()
    return endpoints


def _predict(hooks: Hooks) -> Iterator[Endpoint]:
    name = "predict_batch" if "predict_batch" in hooks else "predict"
    if name in hooks:
        yield Endpoint(PREDICT, hooks[name], batched=name == "predict_batch", hooks=hooks)


def _routed(owners: Iterable[Any], route: str, about: Dict[str, Any], script: str) -> Endpoint:
    """The endpoint of a route: `about` has the name of its function, and whether that takes batches."""
    name, batch, path = about["function"], about["batch"], about["path"]
    function = next(
        (candidate for candidate in (getattr(owner, name, None) for owner in owners) if callable(candidate)), None
    )
    if not callable(function):
        problem = "the route %s leads to %s, and there is no such function" % (path, name)
        raise ScriptError(problem, script, about.get("line", 0), fix="define it in the script")
    shape = RouteShape(tuple(about["segments"]), about["has_body"])
    most = None if isinstance(batch, bool) else batch
    return Endpoint(route, function, batched=bool(batch), max_batch=most, route=shape)


def _decorated(holder: Any) -> Iterator[Tuple[str, str]]:
    """Paths and names of what `@route` marks in a script, or in the class of its Model."""
    for name in dir(holder):
        with contextlib.suppress(Exception):
            for path in routes_of(getattr(holder, name)):
                yield path, name
