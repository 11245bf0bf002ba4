"""What a model takes, as its exported file says."""

from __future__ import annotations

from typing import NamedTuple, Tuple


class Input(NamedTuple):
    """One input: its exported shape, -1 where it is free, and its type."""

    name: str
    shape: Tuple[int, ...]
    dtype: str
