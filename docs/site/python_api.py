"""The page on the Python API, from signatures and docstrings: what scripts import, and the clients."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import panglot
from panglot.client import CallAnswer

SCRIPTS = panglot.FOR_SCRIPTS


def lines() -> Iterator[str]:
    """The page below its introduction."""
    yield from ("## What scripts import", "", "```python")
    yield from ("from panglot import (", *(f"    {name}," for name in SCRIPTS), ")", "```", "")
    yield "Your script's interpreter needs nothing installed for them. Examples: [plain scripts](../dialects/plain.md)."
    for name in SCRIPTS:
        yield from _entry(name, getattr(panglot, name), methods=False)
    yield from ("", "## Clients", "")
    yield "[Call a server from Python](../guides/clients.md) shows how to use them. They come with Panglot."
    yield from _entry("Client", panglot.Client, methods=True)
    yield from _entry("AsyncClient", panglot.AsyncClient, methods=False)
    yield from _entry("CallError", panglot.CallError, methods=False)
    yield from _entry("CallAnswer", CallAnswer, methods=False)


def _entry(name: str, thing: Any, methods: bool) -> Iterator[str]:
    """A name with its signature and docstring, the attributes of a class, and its methods where they are for users."""
    yield from ("", f"### {name}", "", f"`{name}{_signature(thing)}`", *_documented(thing))
    members = list(_members(thing)) if inspect.isclass(thing) else []
    fields = [(field, about.__doc__) for field, about in members if isinstance(about, property)]
    if fields:
        yield from ("", "| attribute | what it is |", "|---|---|")
        yield from (f"| `{field}` | {' '.join(about.split())} |" for field, about in fields)
    for method, about in members if methods else ():
        yield from ("", f"#### {name}.{method}", "", f"`{method}{_signature(about)}`", *_documented(about))


def _members(kind: type) -> Iterator[tuple[str, Any]]:
    """Public properties and methods with a docstring, in the order of the source."""
    for name, about in vars(kind).items():
        if not name.startswith("_") and about.__doc__ and (inspect.isfunction(about) or isinstance(about, property)):
            yield name, about


def _documented(thing: Any) -> Iterator[str]:
    """The paragraphs of its docstring, and of the class of ours that it inherits from."""
    kinds = [kind for kind in getattr(thing, "__mro__", (thing,)) if kind.__module__.startswith("panglot")]
    for paragraph in "\n\n".join(inspect.cleandoc(kind.__doc__ or "") for kind in kinds).split("\n\n"):
        yield from ("", " ".join(paragraph.split()))


def _signature(thing: Any) -> str:
    if inspect.isclass(thing) and not inspect.isfunction(thing.__init__):
        return "()"
    given = [item for item in inspect.signature(thing).parameters.values() if item.name != "self"]
    shown = [_parameter(item) for item in given]
    first_named = next((place for place, item in enumerate(given) if item.kind is item.KEYWORD_ONLY), None)
    if first_named is not None:
        shown.insert(first_named, "*")
    return f"({', '.join(shown)})"


def _parameter(item: inspect.Parameter) -> str:
    """A parameter as it is written, without `Any`, which tells a reader nothing."""
    stars = {item.VAR_POSITIONAL: "*", item.VAR_KEYWORD: "**"}.get(item.kind, "")
    hint = "" if item.annotation in ("Any", item.empty) else f": {item.annotation}"
    if item.default is item.empty:
        return f"{stars}{item.name}{hint}"
    known = item.default is None or isinstance(item.default, str | int | float | bytes)
    return f"{item.name}{hint} = {item.default!r}" if known else f"{item.name}{hint} = ..."
