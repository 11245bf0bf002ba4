"""Two sets of values by key: where they differ, in what, and by how much."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from panglot.tools import arrays
from panglot.tools.arrays import Array, described, name, of_value
from panglot.tools.stages import Opaque

FAMILIES = {"b": "truth", **dict.fromkeys("iufc", "number")}
"""Kinds of types: types of one family are compared by value, where types do not count."""


@dataclass(frozen=True)
class Tolerance:
    """Numbers agree when they are at most `atol + rtol * |right|` apart, whole ones when at most `atol`."""

    atol: float = 1e-6
    rtol: float = 1e-5
    types: bool = True
    """Whether a number's type counts: float32 against float64 differs."""
    lenient: bool = False
    """Whether two single values are compared although their keys differ, and a number with an array of one."""


@dataclass(frozen=True)
class Verdict:
    """The result for one key. `differs` is empty when both sides agree; `gap` is the largest difference of numbers."""

    key: str
    what: str
    differs: str = ""
    gap: float = 0.0
    differs_in: tuple[str, ...] = ()
    """The aspects that differ: some of key, shape, dtype and value."""
    compared: bool = True
    """False for values of which only the type is known."""


def compare(left: Mapping[str, Any], right: Mapping[str, Any], tolerance: Tolerance) -> list[Verdict]:
    """A verdict for every key of either side, in the order of the left."""
    if tolerance.lenient and len(left) == len(right) == 1:
        key = next(iter(left))
        return [_values(key, left[key], next(iter(right.values())), tolerance)]
    verdicts = [
        _values(key, value, right[key], tolerance) if key in right else _missing(key, value, "right")
        for key, value in left.items()
    ]
    return verdicts + [_missing(key, value, "left") for key, value in right.items() if key not in left]


def _missing(key: str, value: Any, side: str) -> Verdict:
    return Verdict(key, _about(value), f"key: it is missing on the {side}", differs_in=("key",))


def _values(key: str, left: Any, right: Any, tolerance: Tolerance) -> Verdict:
    mine, theirs = (value if isinstance(value, Array) else of_value(value) for value in (left, right))
    if mine is None or theirs is None:
        return _plain(key, left, right)
    if tolerance.lenient and {mine.shape, theirs.shape} == {(), (1,)}:
        mine, theirs = mine.reshape(1), theirs.reshape(1)
    types = tolerance.types and not (tolerance.lenient and left is not mine and right is not theirs)
    differences: dict[str, str] = {}
    gap = 0.0
    if mine.shape != theirs.shape:
        differences["shape"] = f"{list(mine.shape)} against {list(theirs.shape)}"
    same_family = _family(mine) == _family(theirs)
    if name(mine.dtype) != name(theirs.dtype) and (types or not same_family):
        differences["dtype"] = f"{name(mine.dtype)} against {name(theirs.dtype)}"
    if mine.shape == theirs.shape and same_family:
        whole = not tolerance.lenient and mine.dtype.kind in "iu" and theirs.dtype.kind in "iu"
        difference = arrays.difference(mine, theirs, tolerance.atol, 0.0 if whole else tolerance.rtol)
        gap = difference.gap
        if difference.count:
            differences["value"] = _value(mine, theirs, difference)
    words = "; ".join(f"{aspect}: {text}" for aspect, text in differences.items())
    return Verdict(key, described(mine), words, gap, tuple(differences))


def _family(array: Any) -> str:
    return FAMILIES.get(array.dtype.kind, str(array.dtype.kind))


def _value(left: Any, right: Any, gap: arrays.Difference) -> str:
    shown = f"{arrays.shown(left, gap.index)} against {arrays.shown(right, gap.index)}"
    off = f", off by {gap.gap:.3g} (allowed {gap.allowed:.3g})" if arrays.is_number(left) and not gap.nans else ""
    if not left.shape:
        return shown + off
    if gap.nans:
        return f"{gap.nans} of {left.size} are NaN on one side only, first at {list(gap.index)}: {shown}"
    return f"{gap.count} of {left.size} differ, {'most' if off else 'first'} at {list(gap.index)}: {shown}{off}"


def _plain(key: str, left: Any, right: Any) -> Verdict:
    """The verdict where at least one side is no array: null, a whole number beyond 64 bits, an object of the script."""
    if isinstance(left, Opaque) and left == right:
        return Verdict(key, _about(left), compared=False)
    if type(left) is not type(right) or isinstance(left, Opaque | Array):
        return Verdict(key, _about(left), f"dtype: {_about(left)} against {_about(right)}", differs_in=("dtype",))
    if left == right:
        return Verdict(key, _about(left))
    return Verdict(key, _about(left), f"value: {_short(left)} against {_short(right)}", differs_in=("value",))


def _about(value: Any) -> str:
    array = value if isinstance(value, Array) else of_value(value)
    if array is not None:
        return described(array)
    return str(value) if isinstance(value, Opaque) else "null" if value is None else type(value).__name__


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= arrays.LONGEST else text[: arrays.LONGEST - 3] + "..."


def flat(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """A JSON value by key, lists of numbers as arrays: the counterpart of the worker's `leaves`."""
    if isinstance(value, dict) and value:
        for key, entry in value.items():
            yield from flat(entry, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list) and value:
        made = of_value(value)
        if made is not None and made.dtype.kind != "U":
            yield path, made
            return
        for index, entry in enumerate(value):
            yield from flat(entry, f"{path}[{index}]")
    else:
        yield path, value
