"""Several requests in one run of the model: arrays with a batch axis of one, stacked and split again."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from panglot_worker.dialects.paddle.redirect import Loaded

CLOSE = 1e-5
"""How far a batch's results may be from those of its parts, absolutely and relatively."""
SAMPLES = 3
Run = Callable[[Any], Any]


class NotSplit(Exception):
    """A run of several inputs did not give one row of output for each."""


def run(function: Run, values: Sequence[Any]) -> List[Any]:
    """The outputs of all values, in order: those of one shape in one run."""
    groups: Dict[Any, List[int]] = {}
    for at, value in enumerate(values):
        # A value that cannot be stacked is alone in its group: its position is the key.
        groups.setdefault(_key(value) or at, []).append(at)
    outputs: List[Any] = [None] * len(values)
    for indexes in groups.values():
        if len(indexes) == 1:
            outputs[indexes[0]] = function(values[indexes[0]])
        else:
            for at, output in zip(indexes, _stacked(function, [values[at] for at in indexes])):
                outputs[at] = output
    return outputs


def _key(value: Any) -> Optional[Tuple[str, Tuple[int, ...]]]:
    """The type and shape that values must share to be stacked; None for a value that cannot be."""
    shape = getattr(value, "shape", None)
    if type(value).__name__ != "ndarray" or not shape or shape[0] != 1:
        return None
    return str(value.dtype), tuple(shape)


def _stacked(function: Run, values: List[Any]) -> List[Any]:
    import numpy

    return split(function(numpy.concatenate(values, axis=0)), len(values))


def split(output: Any, count: int) -> List[Any]:
    """One output per input, each with its batch axis. Raises NotSplit."""
    if isinstance(output, (list, tuple)) and type(output) in (list, tuple):
        parts = [split(value, count) for value in output]
        return [type(output)(part[at] for part in parts) for at in range(count)]
    if isinstance(output, dict):
        named = {name: split(value, count) for name, value in output.items()}
        return [{name: part[at] for name, part in named.items()} for at in range(count)]
    shape = getattr(output, "shape", None)
    if type(output).__name__ != "ndarray" or not shape or shape[0] != count:
        raise NotSplit("run of %d inputs gave %s" % (count, _describe(output)))
    return [output[at : at + 1] for at in range(count)]


def _describe(output: Any) -> str:
    shape = getattr(output, "shape", None)
    return "an array of shape %s" % (tuple(shape),) if shape is not None else "a %s" % type(output).__name__


# Whether requests may share runs


def cannot(loaded: List[Loaded]) -> str:
    """Why a script's runs cannot be stacked, as far as its models tell; empty when they can."""
    if len(loaded) != 1:
        return "the script has %d predictors" % len(loaded)
    inputs = loaded[0].inputs
    if len(inputs) != 1:
        return "the model has %d inputs" % len(inputs) if inputs else "the model's inputs cannot be read"
    shape = inputs[0].shape
    if not shape or shape[0] != -1:
        return "the model was exported with a fixed batch dimension"
    return ""


def samples(loaded: Loaded, sample: Any) -> List[Any]:
    """Different inputs to check with: like the sample, or else by the model's shape; none when that is not known."""
    import numpy

    if _key(sample) is None:
        about = loaded.inputs[0]
        if any(size < 0 for size in about.shape[1:]) or about.dtype not in ("float32", "float64", "int64", "int32"):
            return []
        sample = numpy.zeros((1, *about.shape[1:]), about.dtype)
    # The same numbers at every start, so that all workers decide alike.
    numbers = numpy.random.RandomState(7)
    if sample.dtype.kind == "f":
        noise = [numbers.standard_normal(sample.shape).astype(sample.dtype) for _ in range(SAMPLES)]
        return [sample * (at + 1) / SAMPLES + part for at, part in enumerate(noise)]
    return [numpy.roll(sample, at) if sample.any() else sample + at % 2 for at in range(SAMPLES)]


def differs(function: Run, inputs: List[Any]) -> str:
    """How a stacked run differs from single ones; empty when it does not. A script that fails on it differs too."""
    alone = [function(value) for value in inputs]
    try:
        together = _stacked(function, inputs)
        # A script may remember the size of its last run, and give wrong results for the next.
        again = function(inputs[0])
    except Exception as error:
        return "%s: %s" % (type(error).__name__, " ".join(str(error).split())[-200:])
    if not same(again, alone[0]):
        return "a single run gives another result after a run of %d" % len(inputs)
    if not all(same(value, other) for value, other in zip(alone, together)):
        return "the results of %d inputs in one run are not those of single runs" % len(inputs)
    return ""


def same(mine: Any, theirs: Any) -> bool:
    """Whether two results are equal in structure, shape, type and, but for rounding, in their numbers."""
    import numpy

    if isinstance(mine, (list, tuple)):
        return type(mine) is type(theirs) and len(mine) == len(theirs) and all(map(same, mine, theirs))
    if isinstance(mine, dict):
        return list(mine) == list(theirs) and all(same(mine[name], theirs[name]) for name in mine)
    mine, theirs = numpy.asarray(mine), numpy.asarray(theirs)
    if mine.shape != theirs.shape or mine.dtype != theirs.dtype:
        return False
    if mine.dtype.kind not in "fc":
        return bool((mine == theirs).all())
    return bool(numpy.allclose(mine, theirs, rtol=CLOSE, atol=CLOSE, equal_nan=True))
