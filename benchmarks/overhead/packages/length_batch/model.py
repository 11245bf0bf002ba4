"""Receives a body and answers its length, many in one call."""

from __future__ import annotations

from typing import Any


class Model:
    def predict_batch(self, items: list[Any]) -> list[int]:
        return [len(item) for item in items]
