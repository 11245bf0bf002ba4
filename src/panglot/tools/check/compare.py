"""Two sets of values by key: where they differ, in what, and by how much."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from panglot.tools import arrays
from panglot.tools.arrays import Array, described, name, of_value
from panglot.tools.stages import Opaque

FAMILIES = {"b": "truth", **dict.fromkeys("iufc", "number")}
"""Kinds of types that may stand for one another where types do not count."""


@dataclass(frozen=True)
class Tolerance:
    """Numbers agree when they are at most `atol + rtol * |right|` apart, whole ones when at most `atol`."""

    atol: float = 1e-6
    rtol: float = 1e-5
    types: bool = True
    """Whether a number's type counts: float32 against float64 differs."""
    lenient: bool = False
    """Whether the only value of each side is the same whatever its key, and a number an array of one."""


@dataclass(frozen=True)
class Verdict:
    """What came of one key. `differs` is empty when both sides agree; `gap` is the largest difference of numbers."""

    key: str
    what: str
    differs: str = ""
    gap: float = 0.0
    differs_in: tuple[str, ...] = ()
    """Some of key, shape, dtype and value."""
    compared: bool = True
    """False for values that can be named but not looked into."""


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
    one, other = (value if isinstance(value, Array) else of_value(value) for value in (left, right))
    if one is None or other is None:
        return _plain(key, left, right)
    if tolerance.lenient and {one.shape, other.shape} == {(), (1,)}:
        one, other = one.reshape(1), other.reshape(1)
    types = tolerance.types and not (tolerance.lenient and left is not one and right is not other)
    found: dict[str, str] = {}
    gap = 0.0
    if one.shape != other.shape:
        found["shape"] = f"{list(one.shape)} against {list(other.shape)}"
    same_family = _family(one) == _family(other)
    if name(one.dtype) != name(other.dtype) and (types or not same_family):
        found["dtype"] = f"{name(one.dtype)} against {name(other.dtype)}"
    if one.shape == other.shape and same_family:
        whole = not tolerance.lenient and one.dtype.kind in "iu" and other.dtype.kind in "iu"
        difference = arrays.difference(one, other, tolerance.atol, 0.0 if whole else tolerance.rtol)
        gap = difference.gap
        if difference.count:
            found["value"] = _value(one, other, difference)
    words = "; ".join(f"{aspect}: {text}" for aspect, text in found.items())
    return Verdict(key, described(one), words, gap, tuple(found))


def _family(array: Any) -> str:
    return FAMILIES.get(array.dtype.kind, str(array.dtype.kind))


def _value(left: Any, right: Any, found: arrays.Difference) -> str:
    shown = f"{arrays.shown(left, found.place)} against {arrays.shown(right, found.place)}"
    off = f", off by {found.gap:.3g} (allowed {found.allowed:.3g})" if arrays.is_number(left) and not found.nans else ""
    if not left.shape:
        return shown + off
    if found.nans:
        return f"{found.nans} of {left.size} are NaN on one side only, first at {list(found.place)}: {shown}"
    return f"{found.count} of {left.size} differ, {'most' if off else 'first'} at {list(found.place)}: {shown}{off}"


def _plain(key: str, left: Any, right: Any) -> Verdict:
    """Values of which one at least is no array: null, whole numbers beyond 64 bits, objects of a script's own."""
    if isinstance(left, Opaque) and left == right:
        return Verdict(key, _about(left), compared=False)
    if type(left) is not type(right) or isinstance(left, Opaque | Array):
        return Verdict(key, _about(left), f"dtype: {_about(left)} against {_about(right)}", differs_in=("dtype",))
    if left == right:
        return Verdict(key, _about(left))
    return Verdict(key, _about(left), f"value: {_short(left)} against {_short(right)}", differs_in=("value",))


def _about(value: Any) -> str:
    found = value if isinstance(value, Array) else of_value(value)
    if found is not None:
        return described(found)
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
