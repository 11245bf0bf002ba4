"""The steps of an ensemble, as its config.pbtxt has them."""

from __future__ import annotations

from typing import NamedTuple


class Step(NamedTuple):
    """A step as the file has it: the maps by the names of the model's tensors."""

    number: int
    model: str
    version: str
    inputs: dict[str, str]
    outputs: dict[str, str]
    line: int

    def __str__(self) -> str:
        return f"step {self.number} ({self.model})"
