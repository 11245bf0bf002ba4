"""Ensembles with steps that follow one another: the front calls the models itself, without the ensemble's worker."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import Any

from panglot.dialects.triton.ensemble_step import Step
from panglot.packages.package import ChainStep, Package


def joined(package: Package, steps: Sequence[Step], decoupled: Collection[int]) -> Package:
    """An ensemble, with a chain of its steps if each step needs the one before, and none gives several responses."""
    waits = all(set(after.inputs.values()) & set(before.outputs.values()) for before, after in pairwise(steps))
    # The worker calls steps that need nothing of each other at the same time, which is better than a chain.
    if decoupled or not waits:
        return package
    hops = _hops(package.options["tensors"], steps)
    chain = tuple(
        ChainStep(step.model, step.version, f"in ensemble {package.name}, {step}", json.dumps(hop))
        for step, hop in zip(steps, hops, strict=True)
    )
    return dataclasses.replace(package, chain=chain)


def _hops(tensors: Mapping[str, Any], steps: Sequence[Step]) -> list[dict[str, Any]]:
    """The instructions for the worker of each step: the fields of `panglot_worker.tensors.handing.Hop`."""
    answers = [tensor["name"] for tensor in tensors["outputs"]]
    there = [tensor["name"] for tensor in tensors["inputs"]]
    hops = []
    for at, step in enumerate(steps):
        there += step.outputs.values()
        later = steps[at + 1 :]
        # In reverse, so that of several later steps the first one that needs a tensor stays in the table.
        needed = {name: str(other) for other in reversed(later) for name in other.inputs.values()}
        hops.append({
            "inputs": step.inputs,
            "outputs": step.outputs,
            "keeps": [name for name in there if name in needed or name in answers],
            "needed": needed,
            "answers": answers,
            "last": not later,
            "takes": None,
        })  # fmt: skip
    hops[0]["takes"] = [[tensor["name"], tensor["datatype"], tensor["shape"]] for tensor in tensors["inputs"]]
    hops[0]["rows"] = tensors["max_batch_size"]
    hops[0]["final"] = [name for name in steps[-1].outputs.values() if name in answers]
    return hops
