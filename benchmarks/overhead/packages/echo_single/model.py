"""Echo without a batch method: one call per request."""

from __future__ import annotations

from typing import Any


def predict(request: Any) -> Any:
    return request
