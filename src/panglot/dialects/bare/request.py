"""How an input becomes a request: JSON unchanged, a picture or an array (.npy) as the whole body."""

from __future__ import annotations

import json
from pathlib import Path

from panglot.inputs.base import OCTETS, About, ClientRequest, Given, Json, Whole, Zeros
from panglot.inputs.curl import LONGEST


def make_request(about: About, given: Given) -> ClientRequest:
    return ClientRequest(about.path, Json(given.value) if given.file is None else Whole(given.file))


def example(about: About, folder: Path) -> ClientRequest | None:
    """The request to show: the worker's example where a line holds it, else zeros where the model takes one array."""
    shown = about.api.get("example") or {}
    if shown.get("kind") == "json" and len(json.dumps(shown["value"], separators=(",", ":"))) < LONGEST:
        return None
    size = about.api.get("bytes")
    return ClientRequest(about.path, Zeros(int(size), OCTETS)) if size and shown.get("kind") != "file" else None
