"""Whether rows of several requests may share a run of a model, and how many: proven and measured, never assumed.

A free first dimension proves nothing. A model that subtracts the mean of its batch has one, and gives every request
an answer that depends on its neighbours.
"""

from __future__ import annotations

import time
from typing import Any, Callable, NamedTuple, Optional

from panglot_worker.errors import described
from panglot_worker.runtimes import probing
from panglot_worker.runtimes.base import FREE, Arrays, ModelRuntime
from panglot_worker.runtimes.rows import Feed, NotByRows, run_together

ROWS = 5
TOLERANCES = {"float16": 2e-3, "float32": 1e-5, "float64": 1e-9}
"""How far an answer among others may be from that alone, in parts of the output's largest value:
docs/reference/model-files.md."""
OF_BF16 = 2e-2
GAIN = 1.25
"""How many times cheaper a row must be among many than alone, for requests to share runs."""
SLOW = 0.1
"""Seconds one row takes from which on fewer rows are measured."""
FEW = 4
SLICE = 32
"""Rows in one run, at least, for requests that bring many."""


class RowVerdict(NamedTuple):
    """`rows`: the most that requests share a run with; 0: none. `sliced`: the most rows of one run; 0: any."""

    rows: int
    sliced: int
    why: str


def verdict(model: ModelRuntime, most: int, example: Optional[Arrays] = None) -> RowVerdict:
    """Whether, and by how many, rows may share a run; `example` are inputs that the package gives, if it does."""
    reason = _cannot(model)
    if reason:
        return RowVerdict(0, 0, reason)
    rows = _given_rows(example) or _made_rows(model, example)
    if rows is None:
        return RowVerdict(0, 0, "no inputs could be made up that it runs with; a request.json beside it would help")
    try:
        reason = differences(model, rows)
    except Exception as error:
        reason = "it fails on %d rows (%s)" % (ROWS, described(error)[:200])
    if reason:
        return RowVerdict(0, 0, reason)
    return _measured(model, rows, most)


def _cannot(model: ModelRuntime) -> str:
    """Why the model's inputs rule out shared runs; empty where they do not."""
    for spec in model.inputs:
        if spec.sequence:
            return "its input %s is a sequence" % spec.name
        if spec.shape is None:
            return "the shape of its input %s is not known" % spec.name
        if not spec.shape:
            return "its input %s is a single value" % spec.name
        if spec.shape[0] != FREE:
            return "the first dimension of its input %s is fixed, %d" % (spec.name, spec.shape[0])
    return "" if model.inputs else "it has no inputs"


def _given_rows(example: Optional[Arrays]) -> Optional[Arrays]:
    """The rows of an example, where they are several and not all alike."""
    if not example or any(len(array) < 2 for array in example.values()):
        return None
    rows = {name: array[:ROWS] for name, array in example.items()}
    return rows if _are_distinct(rows) else None


def _made_rows(model: ModelRuntime, example: Optional[Arrays]) -> Optional[Arrays]:
    """Rows that are made up: shaped like the example if there is one, else so that the model runs with them."""
    if not probing.can_be_made(model.inputs):
        return None
    if example:
        shaped = [spec._replace(shape=[FREE, *example[spec.name].shape[1:]]) for spec in model.inputs]
        rows = probing.Trial().arrays(shaped, ROWS)
    else:
        trial = probing.first_that_runs(model)
        if trial is None:
            return None
        rows = trial.arrays(model.inputs, ROWS)
    return rows if _are_distinct(rows) else None


def _are_distinct(rows: Arrays) -> bool:
    count = len(next(iter(rows.values())))
    alone = [tuple(str(array[at : at + 1].tolist()) for array in rows.values()) for at in range(count)]
    return len(set(alone)) >= min(count, 2)


# The proof


def differences(model: ModelRuntime, rows: Arrays) -> str:
    """How answers to rows together differ from answers alone; empty where they do not. Raises what the model raises."""
    names = tuple(spec.name for spec in model.outputs)
    count = len(next(iter(rows.values())))
    single = [Feed({name: array[at : at + 1] for name, array in rows.items()}, names) for at in range(count)]
    started = time.perf_counter()
    alone = [model.run(feed.arrays, names) for feed in single]
    many = SLICE if time.perf_counter() - started < SLOW * count else FEW
    # A model with randomness would fail the comparison below too, and its neighbours would be blamed.
    if not _are_alike(model, model.run(single[0].arrays, names), alone[0]):
        return "it answers the same row differently from run to run"
    # Also in another order and number: an answer may depend on the place of its row in the batch.
    for order in (list(range(count)), [at % count for at in range(many - 1, -1, -1)]):
        try:
            together = run_together(model, [single[at] for at in order], len(order))
        except NotByRows as error:
            return str(error)
        if not all(_are_alike(model, answer, alone[at]) for at, answer in zip(order, together)):
            return "a row gets another answer in a batch than alone"
    return ""


def _are_alike(model: ModelRuntime, answer: Arrays, expected: Arrays) -> bool:
    return all(same(answer[name], value, tolerance(model, name, value)) for name, value in expected.items())


def tolerance(model: ModelRuntime, name: str, array: Any) -> float:
    """How far two answers of an output may be apart; 0: not at all."""
    if any(spec.name == name and spec.datatype == "BF16" for spec in model.outputs):
        return OF_BF16
    return TOLERANCES.get(str(getattr(array, "dtype", "")), 0.0)


def same(left: Any, right: Any, within: float) -> bool:
    """Whether two outputs are alike, up to a part of the largest value."""
    import numpy

    if type(left) is list or type(right) is list:
        return (
            type(left) is type(right)
            and len(left) == len(right)
            and all(same(*two, within) for two in zip(left, right))
        )
    if left.shape != right.shape or left.dtype != right.dtype:
        return False
    if not within:
        return bool((left == right).all())
    finite = right[numpy.isfinite(right)]
    largest = float(numpy.abs(finite).max()) if finite.size else 0.0
    return bool(numpy.allclose(left, right, rtol=within, atol=within * largest, equal_nan=True))


# The measurement


def _measured(model: ModelRuntime, rows: Arrays, most: int) -> RowVerdict:
    """The verdict that follows from the time of a row alone and among many."""
    names = tuple(spec.name for spec in model.outputs)
    single = {name: array[:1] for name, array in rows.items()}
    alone = _seconds(lambda: model.run(single, names), 7)
    count = max(2, min(most, SLICE) if alone < SLOW else FEW)
    many = _repeated(rows, count)
    among = _seconds(lambda: model.run(many, names), 3) / count
    costs = "a row takes %s alone and %s in a batch of %d" % (_shown(alone), _shown(among), count)
    proven = "a row gets the same answer in a batch as alone"
    if most < 2:
        return RowVerdict(0, SLICE, "--max-batch is 1")
    if alone < GAIN * among:
        return RowVerdict(0, max(SLICE, most), "%s, but %s: nothing is gained" % (proven, costs))
    return RowVerdict(most, most, "%s, and %s" % (proven, costs))


def _repeated(rows: Arrays, count: int) -> Arrays:
    import numpy

    return {name: numpy.concatenate([array] * (count // len(array) + 1))[:count] for name, array in rows.items()}


def _seconds(call: Callable[[], Any], times: int) -> float:
    """The shortest time of a call: other work of the machine only makes it longer."""
    shortest = float("inf")
    for _ in range(times):
        started = time.perf_counter()
        call()
        shortest = min(shortest, time.perf_counter() - started)
    return shortest


def _shown(seconds: float) -> str:
    return "%.3g ms" % (seconds * 1e3) if seconds >= 1e-3 else "%.3g us" % (seconds * 1e6)
