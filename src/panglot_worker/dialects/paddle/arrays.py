"""The heads of numpy's files, read without numpy."""

from __future__ import annotations

import ast
import re
from typing import Any

MAGIC = b"\x93NUMPY"
PLAIN = re.compile(r"[<>=|]?[?biufcSUVmM]\d*(\[\w+\])?")
"""Types that consist of their bytes alone. Every other name may be one of the many for objects."""
LONGEST = 10_000
"""Bytes of a head that numpy reads."""


def description(start: bytes) -> Any:
    """The type in a file's head: text, or a list for records; None where it is not known."""
    length = 2 if start[6:7] == b"\1" else 4
    size = int.from_bytes(start[8 : 8 + length], "little")
    text = start[8 + length : 8 + length + size]
    if not start.startswith(MAGIC) or size > LONGEST or len(text) < size:
        return None
    try:
        return ast.literal_eval(text.decode("latin-1").strip())["descr"]
    except (ValueError, SyntaxError, TypeError, KeyError, MemoryError, RecursionError):
        return None


def is_plain(described: Any) -> bool:
    """Whether a type holds no objects, which are pickled."""
    if isinstance(described, str):
        return PLAIN.fullmatch(described) is not None
    if isinstance(described, tuple) and len(described) == 2:
        return is_plain(described[0])
    return isinstance(described, list) and all(
        isinstance(field, tuple) and len(field) in (2, 3) and is_plain(field[1]) for field in described
    )


def dtype(content: bytes) -> str:
    """The type of a .npy file's numbers as its head has it, such as `<f8`; empty when it is none."""
    described = description(content) if content.startswith(MAGIC) else None
    return described if isinstance(described, str) else ""
