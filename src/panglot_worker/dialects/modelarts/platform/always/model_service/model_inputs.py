"""What the models that base classes run by default have in common: inputs by name."""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, NamedTuple, Optional


class Input(NamedTuple):
    """One input of a model: the name of its type as numpy has it, and its sizes; None for one that may vary."""

    dtype: str
    shape: Optional[List[Optional[int]]]


def refuse_strange(data: Dict[str, Any], names: Iterable[str]) -> None:
    """Raises ValueError for keys of a request that are not names of the model's inputs."""
    expected = sorted(names)
    strange = [str(key) for key in data if key not in expected]
    if strange:
        raise ValueError("input key %s is not in model inputs %s" % (", ".join(strange), expected))


def refuse_incomplete(data: Dict[str, Any], names: Iterable[str]) -> None:
    """Raises ValueError when a request lacks an input of the model."""
    absent = [name for name in sorted(names) if name not in data]
    if absent:
        raise ValueError("the request has no input %s" % ", ".join(absent))
