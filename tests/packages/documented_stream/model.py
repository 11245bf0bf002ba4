"""Counts up to a number."""

from __future__ import annotations

from collections.abc import Iterator

from panglot import ClientError


def predict(request: int) -> Iterator[int]:
    if type(request) is not int:
        raise ClientError("send a number")
    yield from range(1, min(request, 100) + 1)


def example() -> int:
    return 3
