"""The platform's variables: how its images are told where the predictor is, and how to serve it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from panglot.errors import StartError

ENTRY = "COG_PREDICT_TYPE_STUB"
PORT, CONCURRENCY = "PORT", "COG_MAX_CONCURRENCY"
SETUP, THROTTLE, LEVEL = "COG_SETUP_TIMEOUT", "COG_THROTTLE_RESPONSE_INTERVAL", "COG_LOG_LEVEL"
USUAL_THROTTLE = 0.5
"""Seconds between two webhooks about a prediction that runs."""
DAY = 86400.0
LEVELS = {name: name for name in ("debug", "info", "warning", "error")} | {"warn": "warning", "fatal": "error"}


def entry(environ: Mapping[str, str]) -> tuple[str, str] | None:
    """The script and the name of the predictor, as the platform's images have them in a variable; None without it."""
    script, _, name = environ.get(ENTRY, "").partition(":")
    return (script, name) if script else None


def defaults(environ: Mapping[str, str]) -> dict[str, Any]:
    """The settings that the platform's variables stand for. Raises StartError."""
    chosen: dict[str, Any] = {}
    port, level = _whole(PORT, environ), environ.get(LEVEL, "").lower()
    seconds = _seconds(SETUP, environ, DAY)
    if port is not None:
        chosen["port"] = port
    # 0 is ignored there, too.
    if seconds:
        chosen["load_timeout"] = seconds
    if level:
        if level not in LEVELS:
            raise StartError(f"{LEVEL}={level}: must be one of {', '.join(LEVELS)}", fix="correct it, or unset it")
        chosen["log_level"] = LEVELS[level]
    return chosen


def concurrency(environ: Mapping[str, str]) -> int | None:
    """How many predictions of an async method may run at once; None where cog.yaml says it. Raises StartError."""
    return _whole(CONCURRENCY, environ)


def throttle(environ: Mapping[str, str]) -> float:
    """Seconds between two webhooks about a prediction that runs. Raises StartError."""
    seconds = _seconds(THROTTLE, environ, 3600.0)
    return USUAL_THROTTLE if seconds is None else seconds


def _whole(name: str, environ: Mapping[str, str]) -> int | None:
    text = environ.get(name, "").strip()
    if not text:
        return None
    if not text.isdecimal() or not 1 <= int(text[:6]) <= 65535:
        raise StartError(f"{name}={text}: must be a whole number, from 1 to 65535", fix="correct it, or unset it")
    return int(text)


def _seconds(name: str, environ: Mapping[str, str], most: float) -> float | None:
    text = environ.get(name, "").strip()
    if not text:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0.0 <= seconds <= most:
        raise StartError(f"{name}={text}: must be seconds, from 0 to {most:.0f}", fix="correct it, or unset it")
    return seconds
