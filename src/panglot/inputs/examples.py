"""The requests that the playground begins with: a package's own example, and its files as the dialect sends them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

from panglot import inputs
from panglot.errors import StartError
from panglot.inputs.base import JSON, About, Base64, Body, ClientRequest, File, Form, Given, Json, Whole, media_type
from panglot.inputs.curl_line import example, known_example
from panglot.inputs.samples import LARGEST_JSON, files_in, sample
from panglot.packages.package import Package
from panglot_worker.files.package_files import UnreadableFile, json_value

FOLDER = "examples"
"""The folder of a package that has requests to try it with."""
MOST_EXAMPLES = 24


class Examples(NamedTuple):
    """Requests in the form for the page, and the package's files that they name."""

    requests: list[dict[str, Any]]
    files: dict[str, Path]


def examples(package: Package, about: About) -> Examples:
    """All requests that the package may answer well, the best first."""
    tries: list[dict[str, Any]] = []
    files: dict[str, Path] = {}
    gallery = list(_gallery(package, about))
    for request in _known(package, about, alone=not gallery):
        shown = _described(request, package.folder, files)
        if shown is not None and shown["body"]["kind"] not in [known["body"]["kind"] for known in tries]:
            tries.append(shown)
    for name, request in gallery:
        shown = _described(request, package.folder, files)
        if shown is not None:
            tries.append({**shown, "title": name})
    return Examples(tries, files)


def _gallery(package: Package, about: About) -> Iterator[tuple[str, ClientRequest]]:
    """The requests of the package's folder `examples/`: bodies in JSON, and files as the dialect sends them."""
    for file in files_in(package.folder / FOLDER, MOST_EXAMPLES):
        value = _read(file) if file.suffix == ".json" else ...
        given = Given(file.name, file=file) if value is ... else Given(file.name, value=value)
        with contextlib.suppress(StartError):
            yield file.stem.replace("_", " ").replace("-", " "), inputs.make_request(about, given)


def _known(package: Package, about: About, alone: bool) -> Iterator[ClientRequest]:
    """The package's own requests. With `alone` also requests that are made up, or name files that may not be there."""
    known = known_example(about, package.folder, made_up=alone)
    if known is not None:
        yield known
    if alone:
        yield example(about, package.folder)
    with contextlib.suppress(StartError):
        yield inputs.make_request(about, sample(package, about))


def _described(request: ClientRequest, folder: Path, files: dict[str, Path]) -> dict[str, Any] | None:
    """The request as JSON; None where its value is unknown."""
    body: dict[str, Any]
    if isinstance(request.body, Json) or _is_json(request.body):
        value = request.body.value if isinstance(request.body, Json) else _read(request.body.file)
        if value is ...:
            return None
        body = {"kind": "json", "value": _marked(value, folder, files)}
    elif isinstance(request.body, Form):
        uploads = {
            name: [_named(file, folder, files) for file in ([given] if isinstance(given, File) else given)]
            for name, given in request.body.files.items()
        }
        body = {"kind": "form", "files": uploads, "fields": dict(request.body.fields)}
    elif isinstance(request.body, Whole):
        type_ = request.body.type or media_type(request.body.file)
        body = {"kind": "file", "file": _named(request.body.file, folder, files), "type": type_}
    else:
        body = {"kind": "none"}
    return {"method": request.method, "path": request.path, "headers": dict(request.headers), "body": body}


def _is_json(body: Body) -> TypeGuard[Whole]:
    """Whether a body is a file of JSON: a command line names it, a page shows what is in it."""
    return isinstance(body, Whole) and body.type == JSON


def _read(file: File) -> Any:
    """The value in a file; `...` where it is unreadable or too large."""
    try:
        return json_value(str(file), LARGEST_JSON)
    except (OSError, UnreadableFile):
        return ...


def _marked(value: Any, folder: Path, files: dict[str, Path]) -> Any:
    """The value with a mark in place of each file."""
    if isinstance(value, Base64):
        return {"$file": _named(value.file, folder, files), "prefix": value.prefix}
    if isinstance(value, dict):
        return {key: _marked(entry, folder, files) for key, entry in value.items()}
    if isinstance(value, list):
        return [_marked(entry, folder, files) for entry in value]
    return value


def _named(file: File, folder: Path, files: dict[str, Path]) -> str:
    """The file's name. A file that exists in the package is noted in `files`: pages may fetch no others."""
    whole = file.resolve() if isinstance(file, Path) else folder
    if whole.is_file() and whole.is_relative_to(folder.resolve()):
        files[file.name] = whole
    return file.name
