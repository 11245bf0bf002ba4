"""The bounds of a video, and which videos may be named."""

from __future__ import annotations

from typing import Any, Dict, NamedTuple, Sequence


class VideoLimits(NamedTuple):
    """How long and how large a video may be, and which decoder takes it.

    `seconds` and `frames` bound files, `stream_seconds` bounds live sources (0: nothing does); the rest bounds both.
    """

    seconds: float = 600.0
    frames: int = 18_000
    pixels: int = 4096 * 2304
    bytes: int = 256 << 20
    open: float = 10.0
    stall: float = 10.0
    stream_seconds: float = 0.0
    retries: int = 5
    results: int = 1000
    streams: int = 64
    python: str = ""
    """The front's interpreter, where that has PyAV: it decodes for scripts whose own has not."""


class SourceRules(NamedTuple):
    """Which sources may be opened."""

    any_file: bool = True
    """Every path of this machine may be named: by the graph file, never by a client."""
    root: str = ""
    """Otherwise the one folder whose files may be named; without it none may."""
    url_allow: Sequence[str] = ()
    folder: str = ""
    """The folder in which a path is looked for when the working folder has no such file."""
    linked: bool = False
    """Files there may have several names: a node stores the files that a front has sent as links."""
    cameras: bool = True
    """Cameras of this machine may be named."""


def limits_of(settings: Dict[str, Any]) -> VideoLimits:
    """The limits that the front sends a worker; limits that it does not send have their defaults."""
    return VideoLimits(**settings.get("video", {}))


def rules_for_clients(settings: Dict[str, Any]) -> SourceRules:
    """The sources that a request may name: files below `uri_root`, and cameras where a setting allows it.

    The address of the client plays no part: behind a proxy, every client comes from loopback.
    """
    root, allowed = str(settings.get("uri_root", "")), settings.get("url_allow", ())
    cameras, linked = bool(settings.get("cameras", False)), bool(settings.get("sent"))
    return SourceRules(any_file=False, root=root, url_allow=allowed, linked=linked, cameras=cameras)


def rules_for_graphs(settings: Dict[str, Any], folder: str) -> SourceRules:
    """The sources that a graph file in `folder` may name: all, because the file belongs to the server's operator."""
    return SourceRules(url_allow=settings.get("url_allow", ()), folder=folder)
