"""How an input becomes a request: JSON with an array for each input, unchanged."""

from __future__ import annotations

import os
from pathlib import Path

from panglot.errors import StartError
from panglot.inputs.base import JSON, About, ClientRequest, Given, Json, Whole

REQUEST = "request.json"


def make_request(about: About, given: Given) -> ClientRequest:
    if given.file is not None:
        fix = "give a .json file with an array for each input"
        raise StartError(f"{given.name}: models of Triton take JSON", fix=fix)
    return ClientRequest(about.path, Json(given.value))


def example(about: About, folder: Path) -> ClientRequest | None:
    """The request.json beside config.pbtxt or the script, where there is one."""
    for path in (Path(str(about.options.get("root", folder))), folder):
        if (path / REQUEST).is_file():
            return ClientRequest(about.path, Whole(Path(os.path.relpath(path / REQUEST)), JSON))
    shown = about.api.get("example") or {}
    return ClientRequest(about.path, Json(shown["value"])) if "value" in shown else None
