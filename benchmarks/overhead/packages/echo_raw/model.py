"""Echo of a raw body: the bytes come back as they are."""

from __future__ import annotations

from typing import Any


def predict(request: Any) -> tuple[bytes, str]:
    return (request.bytes, "application/octet-stream")
