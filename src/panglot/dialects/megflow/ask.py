"""MegFlow's server nodes take a body as it is: a picture under a name in the path, or bytes."""

from __future__ import annotations

from urllib.parse import quote

from panglot.asking.base import OCTETS, About, Ask, Given, Json, Whole, media_type
from panglot.errors import StartError


def ask(about: About, given: Given) -> Ask:
    if about.path.endswith("/bytes"):
        return Ask(about.path, Json(given.value) if given.file is None else Whole(given.file, OCTETS))
    if about.path == "/start/":
        raise StartError("a graph for videos is told what to play", fix="POST /start/VIDEO, then GET /events/0")
    path = (
        about.path if not about.path.endswith("/") else about.path + (quote(given.file.stem) if given.file else "any")
    )
    if given.file is None:
        raise StartError("the graph takes pictures, not JSON", fix="name a file that is a picture")
    kind = media_type(given.file)
    return Ask(path, Whole(given.file, kind if kind.startswith("image/") else "image/*"))
