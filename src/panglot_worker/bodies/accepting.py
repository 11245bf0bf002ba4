"""The answer that a client would like: the header Accept."""

from __future__ import annotations

import re
from typing import Dict

QUALITY = re.compile(r"[01](\.[0-9]{0,3})?")


def weights(accept: str) -> Dict[str, float]:
    """Every media type the header names, with its weight; a weight that makes no sense counts as 0."""
    weighed = {}
    for choice in accept.lower().split(","):
        media, *parameters = choice.replace(" ", "").split(";")
        quality = next((text[2:] for text in parameters if text.startswith("q=")), "1")
        weighed[media] = float(quality) if QUALITY.fullmatch(quality) else 0.0
    return weighed
