"""Inputs made up from a model's own description: they show its outputs, and whether rows may share a run."""

from __future__ import annotations

from typing import Any, List, NamedTuple, Optional

from panglot_worker.runtimes.base import FREE, NUMPY, Arrays, ModelRuntime, ModelTensor

SIZES = (8, 1, 32, 64, 224)
"""Sizes that are tried for free dimensions; the first with which the model runs is used."""
HIGHEST = (9, 1)
"""Whole numbers may be indexes in a table: the probe takes small ones, and smaller ones where the model fails."""


class Trial(NamedTuple):
    """How inputs are made up: the size of free dimensions, and the largest whole number."""

    size: int = SIZES[0]
    highest: int = HIGHEST[0]

    def arrays(self, inputs: List[ModelTensor], rows: int, seed: int = 7) -> Arrays:
        """Inputs of so many rows, each different."""
        import numpy

        numbers = numpy.random.RandomState(seed)
        return {spec.name: self._array(spec, rows, numbers) for spec in inputs}

    def _array(self, spec: ModelTensor, rows: int, numbers: Any) -> Any:
        import numpy

        shape = tuple(self._size(size, at, rows) for at, size in enumerate(spec.shape or ()))
        if spec.datatype == "BYTES":
            texts = numbers.randint(0, self.highest + 1, shape)
            return numpy.array(texts).astype(str).astype(object)
        if spec.datatype == "BOOL":
            return numbers.randint(0, 2, shape).astype(bool)
        if spec.datatype == "UINT8":
            return numbers.randint(0, 256, shape).astype("uint8")
        if "INT" in spec.datatype:
            return numpy.array(numbers.randint(0, self.highest + 1, shape)).astype(NUMPY[spec.datatype])
        return numpy.array(numbers.standard_normal(shape)).astype(NUMPY[spec.datatype])

    def _size(self, size: int, axis: int, rows: int) -> int:
        if size != FREE:
            return size
        return rows if axis == 0 else self.size


def can_be_made(inputs: List[ModelTensor]) -> bool:
    return all(spec.shape is not None and spec.datatype in NUMPY and not spec.sequence for spec in inputs)


def first_that_runs(model: ModelRuntime) -> Optional[Trial]:
    """The first way to make up inputs that the model runs with; None where there is none."""
    if not can_be_made(model.inputs):
        return None
    free = any(size == FREE for spec in model.inputs for size in (spec.shape or ())[1:])
    whole = any("INT" in spec.datatype or spec.datatype == "BYTES" for spec in model.inputs)
    names = [spec.name for spec in model.outputs]
    for size in SIZES if free else SIZES[:1]:
        for highest in HIGHEST if whole else HIGHEST[:1]:
            trial = Trial(size, highest)
            try:
                model.run(trial.arrays(model.inputs, 1), names)
            except Exception:  # noqa: S112  a size that the model refuses
                continue
            return trial
    return None
