"""A line of curl that works on the served package."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from panglot import dialects
from panglot.asking.base import About, Ask, Form, Json, Whole
from panglot.asking.curl import curl
from panglot.asking.samples import likely_name, of_type


def try_line(base: str, about: About, folder: Path, token: bool = False) -> str:
    """The line that sends the package's own example to the server at `base`.

    With `token`, the line sends the one in the caller's PANGLOT_TOKEN.
    """
    return curl(base, example(about, folder), token)


def example(about: About, folder: Path) -> Ask:
    """The request that a ready worker shows as its example; what nobody knows of it is `...`, or a likely name."""
    dialect = dialects.known().get(about.dialect)
    own = getattr(dialect.load("ask"), "example", None) if dialect is not None and dialect.has("ask") else None
    made: Ask | None = own(about, folder) if own is not None else None
    return made if made is not None else _shown(about, folder)


def _shown(about: About, folder: Path) -> Ask:
    shown: Mapping[str, Any] = about.api.get("example") or {}
    kind = shown.get("kind")
    if kind == "form":
        names = shown.get("names", {})
        files: dict[str, Path | list[Path]] = {
            name: _file(folder, type, names.get(name, ""), name) for name, type in shown["files"].items()
        }
        return Ask(about.path, Form(files, dict.fromkeys(shown["fields"], "...")))
    if kind == "file":
        return Ask(about.path, Whole(_file(folder, shown["type"], shown.get("name", ""), "file"), shown["type"]))
    return Ask(about.path, Json(shown["value"] if kind == "json" else ...))


def _file(folder: Path, content_type: str, preferred: str, field: str) -> Path:
    file = of_type(folder, content_type, preferred)
    return Path(os.path.relpath(file)) if file is not None else likely_name(field, content_type)
