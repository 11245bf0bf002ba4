"""Every path that a platform and Panglot both have, and who answers there: whoever adds a route sees what it covers."""

from __future__ import annotations

from panglot import dialects
from panglot.serving import planning
from panglot.web.app import ROUTES
from panglot.web.path_template import is_template, template
from support.server import ROOT

EXAMPLES = {"plain": "digits", "megflow": "megflow/digits"}
"""The folders of examples that are not called like their dialect."""
BY_ACCEPT = {("GET", "/")}
"""The platform answers its clients, and Panglot the browsers, which accept HTML."""
OURS = {("POST", "/login"), ("POST", "/logout"), ("POST", "/reload")}
"""Panglot answers: a route that is free from its first segment on gives way to a fixed path."""
OVERLAPS = {
    "azureml": BY_ACCEPT,
    # The platform's own document, which its tools read.
    "cog": BY_ACCEPT | {("GET", "/openapi.json")},
    "hfendpoint": BY_ACCEPT,
    "paieas": OURS,
    "tiinfer": BY_ACCEPT,
    "truss": BY_ACCEPT,
}


def test_every_overlap_is_known() -> None:
    neutral = [(method, path_of(page.path)) for page in ROUTES for method in page.methods]
    overlaps = {}
    for name in dialects.known():
        native = native_routes(name)
        shared = {
            (method, path)
            for method, path in neutral
            if any(method == own and covers(route, path) for own, route in native)
        }
        if shared:
            overlaps[name] = shared
    assert overlaps == OVERLAPS


def native_routes(dialect: str) -> set[tuple[str, str]]:
    package, resolved = planning.package_at(ROOT / "examples" / EXAMPLES.get(dialect, dialect), {}, {})
    contract = dialects.contract(package, resolved.settings)
    return {(method, route.path) for route in (*contract.routes, *contract.pages) for method in route.methods}


def path_of(route: str) -> str:
    """A path that a route of Panglot has."""
    return template(route).fill() if is_template(route) else route


def covers(route: str, path: str) -> bool:
    return template(route).match(path.encode()) is not None if is_template(route) else route == path
