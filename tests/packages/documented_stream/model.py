"""Counts up to a number."""

from __future__ import annotations

from collections.abc import Iterator


def predict(request: int) -> Iterator[int]:
    yield from range(1, request + 1)


def example() -> int:
    return 3
