"""Pictures inside of JSON: texts in base64, with `data:` in front or without."""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass

BEGINNINGS = {"iVBORw0KGgo": "image/png", "/9j/": "image/jpeg", "R0lGOD": "image/gif", "UklGR": "image/webp"}
"""How base64 of pictures begins, by their first bytes."""
DATA = re.compile(r"data:(image/(?:png|jpeg|gif|webp|bmp));base64,")
SHORTEST = 60


@dataclass(frozen=True)
class EmbeddedPicture:
    kind: str
    content: bytes


def embedded(text: str) -> EmbeddedPicture | None:
    """The picture in a text; None for another text."""
    if len(text) < SHORTEST:
        return None
    named = DATA.match(text)
    kind = named[1] if named else next((kind for start, kind in BEGINNINGS.items() if text.startswith(start)), "")
    if not kind:
        return None
    try:
        return EmbeddedPicture(kind, base64.b64decode(text[named.end() if named else 0 :], validate=True))
    except (binascii.Error, ValueError):
        return None
