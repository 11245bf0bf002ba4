"""Requests of several rows for a script that takes batches: every row is an item of its script call."""

from __future__ import annotations

from typing import Any, Callable, List, Optional, Sequence

from panglot_worker.dialects.base import Stages
from panglot_worker.items.results import one_each, with_one


class Rows(List[Any]):
    """The value of an item that is several items for the script."""


def with_rows(stages: Stages, most: int) -> Stages:
    """The stages of a script with a batch call of at most `most` items. They take Rows apart and put them together."""
    if stages.infer_batch is None:
        return stages
    infer_batch = _flattening(stages.infer_batch, most)
    return stages._replace(
        preprocess=_each(stages.preprocess),
        infer=with_one(infer_batch),
        infer_batch=infer_batch,
        postprocess=_each(stages.postprocess),
    )


def _each(stage: Optional[Callable[[Any], Any]]) -> Optional[Callable[[Any], Any]]:
    if stage is None:
        return None
    inner = stage
    return lambda value: Rows(inner(row) for row in value) if type(value) is Rows else inner(value)


def _flattening(infer_batch: Callable[[List[Any]], Sequence[Any]], most: int) -> Callable[[List[Any]], Sequence[Any]]:
    """The batch call, with each row of a Rows as an item. Too many items become several calls."""

    def run(values: List[Any]) -> Sequence[Any]:
        if Rows not in set(map(type, values)):
            return infer_batch(values)
        items = [row for value in values for row in (value if type(value) is Rows else (value,))]
        results: List[Any] = []
        for start in range(0, len(items), most):
            some = items[start : start + most]
            results.extend(one_each(infer_batch(some), len(some)))
        return _gathered(values, results)

    return run


def _gathered(values: List[Any], results: List[Any]) -> List[Any]:
    """The results of all rows, put together again for the values that brought the rows."""
    gathered: List[Any] = []
    at = 0
    for value in values:
        if type(value) is Rows:
            gathered.append(Rows(results[at : at + len(value)]))
            at += len(value)
        else:
            gathered.append(results[at])
            at += 1
    return gathered
