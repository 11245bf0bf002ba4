"""The mistakes in a contract, which a server looks for before it uses the contract."""

from __future__ import annotations

import re
from collections.abc import Iterator

from panglot.web.contract import (
    ADMIN,
    CONTROL,
    INFER,
    JOBS,
    METRICS,
    PUBLIC,
    Contract,
    InferRoute,
    ModelName,
    RpcService,
)
from panglot.web.path_template import PathTemplate

METHODS = ("GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS")
ACCESS = (PUBLIC, INFER, JOBS, ADMIN, METRICS, CONTROL)
FIELD = re.compile(r"[A-Za-z_]\w* [1-9][0-9]* (?:(?:repeated|map) )?[A-Za-z_][\w.]*")
LOWER = re.compile(r"[a-z0-9-]+")


def problems(contract: Contract) -> Iterator[str]:
    """The mistakes that the author of a dialect has to mend, each as a sentence."""
    for route in contract.routes:
        yield from _path(route.path, route.methods, route.access, route.model)
        yield from _route(route)
    for page in contract.pages:
        yield from _path(page.path, page.methods, page.access, page.model)
        if page.model is not None and (page.model.field or page.model.header):
            yield f"{page.path}: a page reads no field of a body, and no header, for its model"
    for entry in contract.admin:
        yield from _path(entry.path, entry.methods, entry.access, None)
    for form in contract.token_forms:
        if not LOWER.fullmatch(form.header):
            yield f"the header {form.header!r} of a token must be written in lower case"
    for service in contract.services:
        yield from _service(service)
    for listener in contract.listeners:
        yield from (f"port {listener.port}: {problem}" for problem in problems(listener.contract))


def _path(path: str, methods: tuple[str, ...], access: str, model: ModelName | None) -> Iterator[str]:
    if not path.startswith("/"):
        yield f"the path {path!r} must begin with a slash"
    if not isinstance(methods, tuple) or not methods or any(method not in METHODS for method in methods):
        yield f"{path}: methods are some of {', '.join(METHODS)}, and not {methods!r}"
    if access not in ACCESS:
        yield f"{path}: access is one of {', '.join(ACCESS)}, and not {access!r}"
    try:
        names = PathTemplate(path).names
    except ValueError as error:
        yield str(error)
        return
    if model is not None and model.segment and model.segment not in names:
        yield f"{path} has no free segment {{{model.segment}}} that names a model"
    if model is not None and model.header and not LOWER.fullmatch(model.header):
        yield f"{path}: the header {model.header!r} that names a model must be written in lower case"


def _route(route: InferRoute) -> Iterator[str]:
    if route.fields and route.is_free:
        yield f"{route.path}: a path with free segments names its model itself, and in no field of a body"
    if route.fields and (route.spooled or route.without_body):
        yield f"{route.path}: a field is read of a body in memory"


def _service(service: RpcService) -> Iterator[str]:
    for kind, fields in service.messages.items():
        for field in fields:
            if not FIELD.fullmatch(field):
                yield f"{service.full_name}: {kind} has the field {field!r}, which is not like `name 1 string`"
    for method in service.methods:
        for kind in (method.takes, method.gives):
            if "." not in kind and kind not in service.messages:
                yield f"{service.full_name}/{method.name}: there is no message {kind}"
        if method.access not in ACCESS:
            yield f"{service.full_name}/{method.name}: access is one of {', '.join(ACCESS)}, and not {method.access!r}"
        if method.streams and (method.answer is not None or method.administer is not None):
            yield f"{service.full_name}/{method.name}: the front gives one answer, and no stream"
        if method.failure is not None and not method.streams:
            yield f"{service.full_name}/{method.name}: many messages have many answers: say streams=True"
