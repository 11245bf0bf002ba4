"""Echo of a handler of Hugging Face Inference Endpoints."""

from __future__ import annotations

from typing import Any


class EndpointHandler:
    def __init__(self, path: str = "") -> None:
        """There is no model."""

    def __call__(self, data: dict[str, Any]) -> dict[str, Any]:
        return data
