"""What a batch call may return."""

from __future__ import annotations

from typing import Any, Sequence


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
    return one_each(outputs, 1)[0]
