"""MegFlow's server nodes take a body as it is: a picture under a name in the path, a video, or bytes."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

from panglot.errors import StartError
from panglot.inputs.base import OCTETS, About, ClientRequest, Given, Json, Nothing, Whole, media_type

HOW_TO = "put an image into the folder of the graph"
UPLOAD = "/analyze_video"


def make_request(about: About, given: Given) -> ClientRequest:
    """Make the request that sends one input to a graph: bytes as they are, pictures with their media type."""
    if about.path.endswith("/bytes"):
        return ClientRequest(about.path, Json(given.value) if given.file is None else Whole(given.file, OCTETS))
    if about.path.endswith(("/start/any", UPLOAD)):
        if given.file is None:
            raise StartError("a graph for videos takes no JSON", fix="name a video file, or POST /start/VIDEO")
        return ClientRequest(about.path.removesuffix("/start/any").removesuffix(UPLOAD) + UPLOAD, Whole(given.file))
    if given.file is None:
        raise StartError("the graph takes images, not JSON", fix="name an image file")
    path = about.path.removesuffix("any") + quote(given.file.stem)
    kind = media_type(given.file)
    return ClientRequest(path, Whole(given.file, kind if kind.startswith("image/") else "image/*"))


def example(about: About, folder: Path) -> ClientRequest | None:
    """The request that plays a video: by its name where the server may open files, else with the video as the body."""
    shown = about.api.get("example") or {}
    if shown.get("kind") != "video":
        return None
    name = str(shown["name"])
    if shown["may_be_named"]:
        return ClientRequest("/start/" + quote(name or "video.mp4", safe=""), Nothing())
    file = Path(os.path.relpath(folder / name)) if name else Path("video.mp4")
    return ClientRequest(UPLOAD, Whole(file), streams=True)
