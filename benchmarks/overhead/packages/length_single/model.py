"""Receives a body and answers its length, one call per request."""

from __future__ import annotations

from typing import Any


def predict(request: Any) -> int:
    return len(request)
