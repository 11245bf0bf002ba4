"""What bounds a video."""

from __future__ import annotations

from typing import Any, Dict, NamedTuple, Sequence


class Limits(NamedTuple):
    """`seconds` and `frames` bound files, `stream_seconds` live sources (0: nothing does); the rest bounds both."""

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


class Rules(NamedTuple):
    """Which sources may be opened."""

    any_file: bool = True
    """Every path of this machine may be named: by the graph file, never by a client."""
    root: str = ""
    """Otherwise the one folder whose files may be; without it none."""
    url_allow: Sequence[str] = ()
    folder: str = ""
    """Where paths lead from that lead to nothing from the working folder."""
    cameras: bool = True
    """Cameras of this machine may be named."""


def limits_of(settings: Dict[str, Any]) -> Limits:
    """From what the front tells a worker; what it does not say stays as it is."""
    return Limits(**settings.get("video", {}))


def rules_for_clients(settings: Dict[str, Any]) -> Rules:
    """What a request may name: files below `uri_root` alone, however near the client is."""
    root, allowed = str(settings.get("uri_root", "")), settings.get("url_allow", ())
    return Rules(any_file=False, root=root, url_allow=allowed, cameras=bool(settings.get("local_only", True)))


def rules_for_graphs(settings: Dict[str, Any], folder: str) -> Rules:
    """What a graph file in `folder` may name: it belongs to who runs the server."""
    return Rules(url_allow=settings.get("url_allow", ()), folder=folder)
