"""The values of templates as text, and how large they may grow."""

from __future__ import annotations

from typing import Any, List, Sequence

from panglot_worker.graphs.errors import GraphError

MOST_TEXT = 4_000_000
"""Characters a template, or a text in it, may grow to: a loop with a wrong bound must not eat the machine."""
MOST_PIECES = 250_000
"""The same for a list, counted with its commas."""


def shown(value: Any) -> str:
    """A value as text in the file."""
    if isinstance(value, str):
        return value
    pieces: List[str] = []
    _show(value, pieces)
    return joined(pieces)


def _show(value: Any, pieces: List[str]) -> None:
    if isinstance(value, bool):
        pieces.append("true" if value else "false")
    elif isinstance(value, (list, range)):
        for index, item in enumerate(value):
            pieces.append(", " if index else "[")
            _show(item, pieces)
        pieces.append("]" if value else "[]")
    elif isinstance(value, dict):
        for index, (key, item) in enumerate(value.items()):
            pieces.append("%s%s: " % (", " if index else "{", key))
            _show(item, pieces)
        pieces.append("}" if value else "{}")
    elif value is not None and value is not NOTHING:
        pieces.append(str(value))
    if len(pieces) > MOST_PIECES:
        raise GraphError("it grows beyond %d values" % MOST_PIECES)


def joined(texts: Sequence[str], mark: str = "") -> str:
    """Join texts. Raises GraphError for what is too long, before it takes the memory."""
    if sum(map(len, texts)) + len(mark) * len(texts) > MOST_TEXT:
        raise GraphError("it grows beyond %d characters" % MOST_TEXT)
    return mark.join(texts)


def fitting(number: int) -> int:
    """A number, if it fits 64 bit, as on the platform. Raises GraphError."""
    if not -(2**63) <= number < 2**63:
        raise GraphError("a number does not fit 64 bit")
    return number


def divided(a: int, b: int) -> int:
    """Division of whole numbers, rounded towards zero."""
    return abs(a) // abs(b) * (1 if (a < 0) is (b < 0) else -1)


NOTHING = object()
"""The value of an assignment: it prints nothing."""
