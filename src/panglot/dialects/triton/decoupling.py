"""Ensembles with decoupled steps: the steps behind such a step run once for each of its responses."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence
from pathlib import Path

from panglot.dialects.triton.ensemble_step import Step
from panglot.errors import StartError
from panglot.packages.package import Package

Origin = tuple[Step, ...]
"""The decoupled steps on the way to a tensor, in their order."""
RULE = "responses of different decoupled models belong to no common one"


def joined(package: Package, steps: Sequence[Step], decoupled: Collection[int], path: Path) -> Package:
    """An ensemble with decoupled steps, given by their numbers. They make the ensemble decoupled. Raises StartError."""
    if not decoupled:
        return package
    origins: dict[str, Origin] = {}
    for step in steps:
        origin = _together(
            [origins.get(name, ()) for name in step.inputs.values()], f"{step} has inputs", path, step.line
        )
        for name in step.outputs.values():
            origins[name] = (*origin, step) if step.number in decoupled else origin
    outputs = [tensor["name"] for tensor in package.options["tensors"]["outputs"]]
    _together([origins.get(name, ()) for name in outputs], "the ensemble has outputs", path, 0)
    config = {**package.options["config"], "model_transaction_policy": {"decoupled": True}}
    described = [
        {**step, "decoupled": number in decoupled} for number, step in enumerate(package.options["ensemble"], 1)
    ]
    return dataclasses.replace(package, options={**package.options, "config": config, "ensemble": described})


def _together(origins: Sequence[Origin], what: str, path: Path, line: int) -> Origin:
    """The common origin of tensors that a step needs together. Raises StartError where they have none."""
    # Each origin must be a beginning of the longest one: then each response has one value of every tensor.
    longest = max(origins, key=len, default=())
    for origin in origins:
        if origin != longest[: len(origin)]:
            problem = f"{what} of {origin[-1]} and of {longest[-1]}: {RULE}"
            raise StartError(problem, file=str(path), line=line)
    return longest
