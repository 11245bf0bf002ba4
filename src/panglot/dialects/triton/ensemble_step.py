"""The steps of an ensemble, as its config.pbtxt has them."""

from __future__ import annotations

from typing import NamedTuple


class Step(NamedTuple):
    """A step as in the file. The maps lead from the tensors of the model to the tensors of the ensemble."""

    number: int
    model: str
    version: str
    inputs: dict[str, str]
    outputs: dict[str, str]
    line: int

    def __str__(self) -> str:
        return f"step {self.number} ({self.model})"
