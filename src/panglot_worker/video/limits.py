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
    """Paths of this machine, and its cameras, may be named: nobody else can reach the server."""
    root: str = ""
    """Otherwise the one folder whose files may be."""
    url_allow: Sequence[str] = ()
    folder: str = ""
    """Where paths lead from that lead to nothing from the working folder."""


def limits_of(settings: Dict[str, Any]) -> Limits:
    """From what the front tells a worker; what it does not say stays as it is."""
    return Limits(**settings.get("video", {}))


def rules_of(settings: Dict[str, Any], folder: str) -> Rules:
    return Rules(
        bool(settings.get("local_only", True)),
        str(settings.get("uri_root", "")),
        settings.get("url_allow", ()),
        folder,
    )
