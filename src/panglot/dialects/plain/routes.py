"""The routes that a plain script gives to functions of its own: by `@route`, or by the table [routes]."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from panglot.errors import StartError
from panglot.packages.source import Function
from panglot.settings import tomlfile

PREDICT = "/predict"
RESERVED = ("/", "/metrics", "/docs", "/openapi.json", "/status", "/analyze_video")
PATH = re.compile(r"(/[A-Za-z0-9._~-]+)+")
RULES = "a path is like /embed or /v1/labels: letters, digits and . _ ~ - between slashes"


@dataclass(frozen=True)
class Route:
    """A route of the script. `batch`: whether the function takes lists of requests, or of how many at most."""

    path: str
    function: str
    batch: bool | int = False
    file: str = ""
    line: int = 0

    @property
    def reason(self) -> str:
        return f"{Path(self.file).name}:{self.line} gives {self.function} the route {self.path}"

    def for_worker(self) -> dict[str, Any]:
        return {"function": self.function, "batch": self.batch, "line": self.line}


def routes(tree: ast.Module, body: list[ast.stmt], script: Path, config: Path | None) -> list[Route]:
    """The routes of a script whose functions are in `body`, those of its decorators first. Raises StartError."""
    routes = [*_decorated(tree, body, script), *_listed(config)]
    taken: dict[str, Route] = {}
    for route in routes:
        other = taken.setdefault(route.path, route)
        if other is not route and other.function != route.function:
            problem = f"{route.path} is the route of {other.function} already"
            raise StartError(problem, file=route.file, line=route.line, fix="give each function a path of its own")
        _check(route)
    return list({**taken, **{route.path: route for route in routes}}.values())


def _check(route: Route) -> None:
    problem, fix = "", ""
    if not PATH.fullmatch(route.path):
        problem, fix = f"{route.path!r} cannot be a route", RULES
    elif route.path in RESERVED or route.path.startswith("/v2/"):
        problem, fix = f"{route.path} is a route of every package", "choose another path"
    elif type(route.batch) is int and route.batch < 1:
        problem, fix = f"batch = {route.batch}", "write true, false, or how many requests at most"
    if problem:
        raise StartError(problem, file=route.file, line=route.line, fix=fix)


# Decorators


def _decorated(tree: ast.Module, body: list[ast.stmt], script: Path) -> Iterator[Route]:
    """The functions that `@route` of the module `panglot` marks."""
    names = set(_names(tree))
    for node in body:
        if isinstance(node, Function):
            for decorator in reversed(node.decorator_list):
                called = decorator.func if isinstance(decorator, ast.Call) else decorator
                if ast.unparse(called) in names:
                    yield _read(decorator, node.name, script)


def _names(tree: ast.Module) -> Iterator[str]:
    """What the script calls our decorator."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (f"{alias.asname or alias.name}.route" for alias in node.names if alias.name == "panglot")
        elif isinstance(node, ast.ImportFrom) and node.module == "panglot":
            yield from (alias.asname or alias.name for alias in node.names if alias.name == "route")


def _read(decorator: ast.expr, function: str, script: Path) -> Route:
    """The route of one decorator, whose arguments must be plain values: the script is read and not run."""
    words = decorator.keywords if isinstance(decorator, ast.Call) else []
    values = {keyword.arg or "": _literal(keyword.value) for keyword in words}
    paths = [_literal(argument) for argument in (decorator.args if isinstance(decorator, ast.Call) else [])]
    path = paths[0] if paths else values.get("path")
    batch = values.get("batch", False)
    if not isinstance(path, str) or not isinstance(batch, int) or set(values) - {"path", "batch"} or len(paths) > 1:
        raise StartError(
            f"the route of {function} must be plain text that can be read without running the script",
            file=str(script),
            line=decorator.lineno,
            fix=f'write @route("/{function}"), or @route("/{function}", batch=True) for lists of requests',
        )
    return Route(path, function, batch, str(script), decorator.lineno)


def _literal(node: ast.expr) -> Any:
    return node.value if isinstance(node, ast.Constant) else None


# The table


def _listed(config: Path | None) -> Iterator[Route]:
    """The routes of the table [routes] in panglot.toml: a function's name, or a table with `function` and `batch`."""
    if config is None:
        return
    file = tomlfile.read(config)
    table = file.table.get("routes", {})
    if not isinstance(table, dict):
        raise file.error("routes: expected a table", "routes", fix='[routes] "/embed" = "embed"')
    for path, value in table.items():
        about = {"function": value} if isinstance(value, str) else value
        if not isinstance(about, dict) or not isinstance(about.get("function"), str):
            fix = f'"{path}" = "function", or "{path}" = {{function = "function", batch = true}}'
            raise file.error(f"routes.{path}: expected the name of a function", "routes", path, fix=fix)
        batch = about.get("batch", False)
        if set(about) - {"function", "batch"} or not isinstance(batch, int):
            raise file.error(f"routes.{path}: there are function, and batch: true, false or a number", "routes", path)
        yield Route(path, about["function"], batch, str(config), file.line("routes", path))
