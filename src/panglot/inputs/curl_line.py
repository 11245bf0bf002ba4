"""A line of curl that works on the served package, as it is pasted."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from panglot import dialects, inputs
from panglot.errors import StartError
from panglot.inputs.base import JSON, About, ClientRequest, Form, Json, Whole
from panglot.inputs.curl import LONGEST, curl, json_text
from panglot.inputs.made_up import NoValue, value_of
from panglot.inputs.samples import likely_name, of_type, picture, request_file, request_value

NOWHERE = Path("/nonexistent")
HOW_TO = "put a request.json in the package's folder"


def curl_line(base: str, about: About, folder: Path, token: bool = False) -> str:
    """The line that sends the package's own example to the server at `base`; empty where there is none.

    With `token`, the line also sends the token in PANGLOT_TOKEN.
    """
    known = known_example(about, folder)
    return curl(base, known, token) if known is not None else ""


def how_to(about: About) -> str:
    """The advice for an author whose package has no such line."""
    own = _of_dialect(about, "HOW_TO")
    return str(own) if own is not None else HOW_TO


def known_example(
    about: About, folder: Path | None, longest: float = LONGEST, made_up: bool = True
) -> ClientRequest | None:
    """A request that can be sent: its files are there, and its JSON is short enough for a command line.

    Where the package has none, a request is made up from type hints, if `made_up` allows it.
    """
    candidates = _candidates(about, folder or NOWHERE, made_up)
    return next((request for request in candidates if _can_be_sent(request, longest)), None)


def _candidates(about: About, folder: Path, made_up: bool) -> Iterator[ClientRequest]:
    """Requests, the best first: the worker's example, request.json, a picture, a request made up from type hints."""
    shown = about.api.get("example") or {}
    # Made-up JSON comes behind request.json; an example with files of the package comes before it.
    yields = shown.get("guessed") and shown.get("kind") == "json"
    if not yields and (made_up or not shown.get("guessed")):
        yield example(about, folder)
    named = request_file(folder)
    if named is not None:
        file = Path(os.path.relpath(named))
        yield from _asked(about, request_value(folder))
        yield ClientRequest(about.path, Whole(file, JSON))
    if yields and made_up:
        yield example(about, folder)
    yield from _asked(about, picture(folder))
    if made_up:
        with contextlib.suppress(NoValue):
            yield ClientRequest(about.path, Json(value_of(about.api.get("request_schema") or {})))


def _asked(about: About, given: Any) -> Iterator[ClientRequest]:
    if given is not None:
        with contextlib.suppress(StartError):
            yield inputs.make_request(about, given)


def _can_be_sent(request: ClientRequest, longest: float) -> bool:
    body = request.body
    if isinstance(body, Json):
        return body.value is not ... and len(json_text(body.value)) < longest
    if isinstance(body, Form):
        several = [files if isinstance(files, list) else [files] for files in body.files.values()]
        there = all(Path(str(file)).is_file() for files in several for file in files)
        return there and "..." not in body.fields.values()
    return not isinstance(body, Whole) or Path(str(body.file)).is_file()


def example(about: About, folder: Path) -> ClientRequest:
    """The request that a ready worker has as its example. Unknown values are `...`, unknown files have likely names."""
    own = _of_dialect(about, "example")
    made: ClientRequest | None = own(about, folder) if own is not None else None
    return made if made is not None else _shown(about, folder)


def _of_dialect(about: About, name: str) -> Any:
    dialect = dialects.known().get(about.dialect)
    return getattr(dialect.load("request"), name, None) if dialect is not None and dialect.has("request") else None


def _shown(about: About, folder: Path) -> ClientRequest:
    shown: Mapping[str, Any] = about.api.get("example") or {}
    kind = shown.get("kind")
    if kind == "form":
        names = shown.get("names", {})
        files: dict[str, Path | list[Path]] = {
            name: _file(folder, type, names.get(name, ""), name) for name, type in shown["files"].items()
        }
        values = shown.get("values", {})
        return ClientRequest(about.path, Form(files, {name: values.get(name, "...") for name in shown["fields"]}))
    if kind == "file":
        return ClientRequest(
            about.path, Whole(_file(folder, shown["type"], shown.get("name", ""), "file"), shown["type"])
        )
    return ClientRequest(about.path, Json(shown["value"] if kind == "json" else ...))


def _file(folder: Path, content_type: str, preferred: str, field: str) -> Path:
    file = of_type(folder, content_type, preferred)
    return Path(os.path.relpath(file)) if file is not None else likely_name(field, content_type)
