"""The results that a batch call may return."""

from __future__ import annotations

from typing import Any, Callable, List, Sequence


class WrongResults(Exception):
    """`predict_batch` did not return one result per item."""


def one_each(outputs: Any, expected: int) -> Sequence[Any]:
    """Check that a batch call gave a sequence with one result per item."""
    if isinstance(outputs, (list, tuple)) or (hasattr(outputs, "__array__") and getattr(outputs, "ndim", 0) > 0):
        if len(outputs) == expected:
            return outputs  # type: ignore[no-any-return]
        raise WrongResults("the batch call got %d items and returned %d results" % (expected, len(outputs)))
    raise WrongResults(
        "the batch call must return a list with one result per item (%d), not %s" % (expected, type(outputs).__name__)
    )


def only_result(outputs: Any) -> Any:
    """The one result of a batch call with one item. Raises WrongResults."""
    return one_each(outputs, 1)[0]


def with_one(infer_batch: Callable[[List[Any]], Any]) -> Callable[[Any], Any]:
    """A batch call as a call with one item."""
    return lambda value: only_result(infer_batch([value]))
