"""What a client names as a video: a file, a camera, or an address of http, https or rtsp. Pure."""

from __future__ import annotations

import re

SCHEMES = ("http", "https", "rtsp")
ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*[:,]")
CAMERA = re.compile(r"/dev/video[0-9]+")


def is_address(text: str) -> bool:
    """Whether a text is meant as an address, and not as a path: `concat:a` is, and so is `subfile,,`."""
    return ADDRESS.match(text) is not None


def shown(text: str) -> str:
    """An address without its password."""
    return re.sub(r"(://[^@/:]*):[^@/]*@", r"\1:***@", text)
