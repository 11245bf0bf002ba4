"""Echo of a scoring script of Azure ML: it reads the text by itself, as such scripts do."""

from __future__ import annotations

import json
from typing import Any


def init() -> None:
    """There is no model."""


def run(raw_data: str) -> Any:
    return json.loads(raw_data)
