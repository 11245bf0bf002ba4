"""The languages of the pages: which of them a browser wants, and the texts of the pages in it."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.requests import Request

ENGLISH, CHINESE = "en", "zh-CN"
LANGUAGES = (ENGLISH, CHINESE)
"""Each has a dictionary, `phrases.LANGUAGE.json`, in every folder of pages."""

Phrases = Mapping[str, str]


def language_of(request: Request) -> str:
    """The language that a browser wants most of those that the pages have; English where it wants none of them."""
    return wanted(request.headers.get("accept-language", ""))


def wanted(header: str) -> str:
    """The same of the header itself, in which each language may have a weight."""
    weights: dict[str, float] = {}
    for entry in header.split(","):
        name, _, parameter = entry.partition(";")
        known = next((language for language in LANGUAGES if _family(language) == _family(name)), None)
        weight = _weight(parameter)
        if known is not None and weight > weights.get(known, 0.0):
            weights[known] = weight
    return max(weights, key=lambda name: weights[name], default=ENGLISH)


def _family(name: str) -> str:
    return name.strip().lower().partition("-")[0]


def _weight(parameter: str) -> float:
    name, _, value = parameter.partition("=")
    try:
        return float(value) if name.strip() == "q" else 1.0
    except ValueError:
        return 0.0
