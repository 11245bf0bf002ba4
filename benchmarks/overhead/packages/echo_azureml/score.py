"""Echo of a scoring script of Azure ML, which reads the text by the library that plain scripts are read by."""

from __future__ import annotations

from typing import Any

import orjson


def init() -> None:
    """There is no model."""


def run(raw_data: str) -> Any:
    return orjson.loads(raw_data)
