"""The routes of a plain script's own functions: by `@route`, or by the table [routes]."""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from panglot.errors import StartError
from panglot.packages.source import Function
from panglot.settings import tomlfile
from panglot.web.path_template import FREE, is_template, template

PREDICT = "/predict"
RESERVED = (
    "", "metrics", "docs", "openapi.json", "status", "status.json", "analyze_video", "v2", "models", "jobs", "pages",
    "playground.json", "samples", "reload", "login", "logout",
)  # fmt: skip
"""The first segments of paths that every server has."""
PATH = re.compile(r"(/(?:[A-Za-z0-9._~-]|\{[A-Za-z_]\w*(?:\.\.\.)?\})+)+")
RULES = "a path is like /embed, /v1/labels or /items/{name}: letters, digits and . _ ~ - between slashes"
OTHER_SEGMENT = re.compile(r"<(?:\w+:)?(\w+)>|(?<=/):(\w+)")
"""A free segment as other frameworks write it."""
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
WITHOUT_BODY = ("GET", "DELETE")
ARGUMENTS = ("path", "batch", "methods")


@dataclass(frozen=True)
class Route:
    """A route of the script. `batch`: whether the function takes lists of requests, or the most of a list."""

    path: str
    function: str
    batch: bool | int = False
    methods: tuple[str, ...] = ("POST",)
    file: str = ""
    line: int = 0

    @property
    def key(self) -> str:
        """The name of the route for the worker. With different methods, several functions may have one path."""
        return self.path if self.methods == ("POST",) else f"{','.join(self.methods)} {self.path}"

    @property
    def reason(self) -> str:
        return f"{Path(self.file).name}:{self.line} gives {self.function} the route {self.key}"

    @property
    def takes(self) -> set[tuple[str, str]]:
        """Each method with the path, without the names of free segments: they tell no two paths apart."""
        return {(method, FREE.sub("{}", self.path)) for method in self.methods}

    def for_worker(self) -> dict[str, Any]:
        has_body = any(method not in WITHOUT_BODY for method in self.methods)
        shape = {"path": self.path, "methods": self.methods, "has_body": has_body}
        segments = [match[1] for match in FREE.finditer(self.path)]
        return {"function": self.function, "batch": self.batch, "line": self.line, "segments": segments, **shape}


def routes(tree: ast.Module, body: list[ast.stmt], script: Path, config: Path | None) -> list[Route]:
    """The routes of a script with its functions in `body`: first the ones of decorators. Raises StartError."""
    routes = [*_decorated(tree, body, script), *_listed(config)]
    taken: dict[tuple[str, str], Route] = {}
    for route in routes:
        _check(route)
        for way in route.takes:
            other = taken.setdefault(way, route)
            if other.function != route.function:
                problem = f"{way[0]} {route.path} is the route of {other.function} already"
                fix = "give each function a path or a method of its own"
                raise StartError(problem, file=route.file, line=route.line, fix=fix)
    unique = {route.key: route for route in routes}.values()
    # Tools, and clients that name no route, use the first one: it should take a body, at a path without free segments.
    return sorted(unique, key=lambda route: ("POST" not in route.methods, is_template(route.path)))


def _check(route: Route) -> None:
    problem, fix = "", ""
    if not PATH.fullmatch(route.path):
        problem, fix = f"{route.path!r} cannot be a route", _better(route.path)
    elif _misfit(route.path):
        problem, fix = f"{route.path!r} cannot be a route: {_misfit(route.path)}", RULES
    elif route.path.split("/")[1] in RESERVED:
        problem, fix = f"{route.path} is a route of every package", "choose another path"
    elif not route.methods or set(route.methods) - set(METHODS):
        wrong = ", ".join(sorted(set(route.methods) - set(METHODS))) or "nothing"
        problem = f"the route {route.path} has the method {wrong}"
        fix = f'there are {", ".join(METHODS)}: write methods=["GET"], say'
    elif type(route.batch) is int and route.batch < 1:
        problem, fix = f"batch = {route.batch}", "write true, false, or how many requests at most"
    if problem:
        raise StartError(problem, file=route.file, line=route.line, fix=fix)


def _better(path: str) -> str:
    """What to write instead of a path that is not allowed."""
    better = OTHER_SEGMENT.sub(lambda match: "{%s}" % (match[1] or match[2]), path)
    better = better if better.startswith("/") else f"/{better}"
    return f'write "{better}"' if PATH.fullmatch(better) else RULES


def _misfit(path: str) -> str:
    """Why the free segments of a path are not allowed; empty where they are."""
    try:
        template(path)
    except ValueError as error:
        return str(error).partition(": ")[2]
    return ""


# Decorators


def _decorated(tree: ast.Module, body: list[ast.stmt], script: Path) -> Iterator[Route]:
    """The functions with the decorator `@route` of the module `panglot`."""
    names = set(_names(tree))
    for node in body:
        if isinstance(node, Function):
            for decorator in reversed(node.decorator_list):
                called = decorator.func if isinstance(decorator, ast.Call) else decorator
                if ast.unparse(called) in names:
                    yield _read(decorator, node.name, script)


def _names(tree: ast.Module) -> Iterator[str]:
    """The names that the decorator has in the script."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (f"{alias.asname or alias.name}.route" for alias in node.names if alias.name == "panglot")
        elif isinstance(node, ast.ImportFrom) and node.module == "panglot":
            yield from (alias.asname or alias.name for alias in node.names if alias.name == "route")


def _read(decorator: ast.expr, function: str, script: Path) -> Route:
    """The route of one decorator. Raises StartError for arguments that are no plain values: the script does not run."""
    words = decorator.keywords if isinstance(decorator, ast.Call) else []
    values = {keyword.arg or "": _literal(keyword.value) for keyword in words}
    paths = [_literal(argument) for argument in (decorator.args if isinstance(decorator, ast.Call) else [])]
    path = paths[0] if paths else values.get("path")
    batch, methods = values.get("batch", False), _methods(values.get("methods", "POST"))
    unknown = next((word for word in values if word not in ARGUMENTS), None)
    if unknown is not None:
        near = difflib.get_close_matches(unknown, ARGUMENTS, 1)
        meant = f"did you mean {near[0]}? " if near else ""
        raise StartError(
            f"@route has no argument '{unknown}'",
            file=str(script),
            line=decorator.lineno,
            fix=f'{meant}write @route("/{function}", methods=["GET"], batch=True), each as needed',
        )
    if not isinstance(path, str) or not isinstance(batch, int) or methods is None or len(paths) > 1:
        raise StartError(
            f"the route of {function} must be plain text that can be read without running the script",
            file=str(script),
            line=decorator.lineno,
            fix=f'write @route("/{function}"), with methods=["GET"] for another method, batch=True for lists',
        )
    return Route(path, function, batch, methods, str(script), decorator.lineno)


def _literal(node: ast.expr) -> Any:
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return [_literal(element) for element in node.elts]
    return node.value if isinstance(node, ast.Constant) else None


def _methods(value: Any) -> tuple[str, ...] | None:
    """The methods that a value names, in the order of their table; None where it names none."""
    words = [value] if isinstance(value, str) else value
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        return None
    given = list(dict.fromkeys(word.upper() for word in words))
    return tuple(sorted(given, key=lambda method: METHODS.index(method) if method in METHODS else -1))


# The table


def _listed(config: Path | None) -> Iterator[Route]:
    """The routes of the table [routes] in panglot.toml: each has the name of a function, or a table as for @route."""
    if config is None:
        return
    file = tomlfile.read(config)
    table = file.table.get("routes", {})
    if not isinstance(table, dict):
        raise file.error("routes: expected a table", "routes", fix='[routes] "/embed" = "embed"')
    for path, value in table.items():
        about = {"function": value} if isinstance(value, str) else value
        if not isinstance(about, dict) or not isinstance(about.get("function"), str):
            fix = f'"{path}" = "function", or "{path}" = {{function = "function", methods = ["GET"]}}'
            raise file.error(f"routes.{path}: expected the name of a function", "routes", path, fix=fix)
        batch, methods = about.get("batch", False), _methods(about.get("methods", "POST"))
        if set(about) - {"function", "batch", "methods"} or not isinstance(batch, int) or methods is None:
            words = 'there are function, batch (true, false or a number) and methods (such as ["GET"])'
            raise file.error(f"routes.{path}: {words}", "routes", path)
        yield Route(path, about["function"], batch, methods, str(config), file.line("routes", path))
