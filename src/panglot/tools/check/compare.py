"""Two sets of values by key: where they differ, and by how much."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from panglot.tools.arrays import Array, name, of_value


@dataclass(frozen=True)
class Tolerance:
    """Numbers agree when they are at most `atol + rtol * |right|` apart."""

    atol: float = 1e-6
    rtol: float = 1e-5
    types: bool = True
    """Whether a number's type counts: float32 against float64 differs."""

    def allowed(self, right: Any) -> float:
        return self.atol + self.rtol * abs(right) if right == right and abs(right) != float("inf") else self.atol


@dataclass(frozen=True)
class Verdict:
    """What came of one key. `differs` is empty when both sides agree; `gap` is the largest difference of numbers."""

    key: str
    what: str
    differs: str = ""
    gap: float = 0.0


def compare(left: Mapping[str, Any], right: Mapping[str, Any], tolerance: Tolerance) -> list[Verdict]:
    """A verdict for every key of either side, in the order of the left."""
    if len(left) == len(right) == 1:
        key = next(iter(left))
        return [_values(key, left[key], next(iter(right.values())), tolerance)]
    verdicts = []
    for key, value in left.items():
        if key in right:
            verdicts.append(_values(key, value, right[key], tolerance))
        else:
            verdicts.append(Verdict(key, _about(value), "it is missing on the right"))
    verdicts += [
        Verdict(key, _about(value), "it is missing on the left") for key, value in right.items() if key not in left
    ]
    return verdicts


def compare_keys(left: Mapping[str, Any], right: Mapping[str, Any], tolerance: Tolerance) -> list[Verdict]:
    """As `compare`, but keys count even when there is only one on each side."""
    shared = {key: value for key, value in left.items() if key in right}
    verdicts = [_values(key, value, right[key], tolerance) for key, value in shared.items()]
    for side, here, there in (("right", left, right), ("left", right, left)):
        missing = [key for key in here if key not in there]
        verdicts += [Verdict(key, _about(here[key]), f"it is missing on the {side}") for key in missing]
    return verdicts


def _values(key: str, left: Any, right: Any, tolerance: Tolerance) -> Verdict:
    if not isinstance(left, Array) and not isinstance(right, Array):
        return _scalars(key, left, right, tolerance)
    one, other = (value if isinstance(value, Array) else of_value(value) for value in (left, right))
    if one is None or other is None:
        return Verdict(key, _about(left), f"{_about(left)} against {_about(right)}")
    # A single number is as good as an array of one.
    if {one.shape, other.shape} == {(), (1,)}:
        one, other = (Array(array.dtype, (1,), array.data) for array in (one, other))
    return _arrays(key, one, other, tolerance)


def _scalars(key: str, left: Any, right: Any, tolerance: Tolerance) -> Verdict:
    what = _about(left)
    if _is_number(left) and _is_number(right):
        if left == right or (left != left and right != right):
            return Verdict(key, what)
        gap = abs(left - right)
        if gap <= tolerance.allowed(right):
            return Verdict(key, what, gap=gap)
        return Verdict(key, what, f"{left!r} against {right!r}, {_off(gap, tolerance.allowed(right))}", gap)
    if type(left) is type(right) and (left == right or str(left) == str(right)):
        return Verdict(key, what)
    return Verdict(key, what, f"{_short(left)} against {_short(right)}")


def _arrays(key: str, left: Array, right: Array, tolerance: Tolerance) -> Verdict:
    what = str(left)
    if left.shape != right.shape:
        return Verdict(key, what, f"the shape {list(left.shape)} against {list(right.shape)}")
    mixed = left.dtype != right.dtype and name(left.dtype) != name(right.dtype)
    if not mixed and left.dtype == right.dtype and left.fortran == right.fortran and left.data == right.data:
        return Verdict(key, what)
    if left.is_number and right.is_number:
        found = _numbers(left, left.values(), right.values(), tolerance)
    else:
        found = _elements(left, left.values(), right.values())
    differs, gap = found
    if mixed and tolerance.types and left.is_number:
        differs = f"{name(left.dtype)} against {name(right.dtype)}" + (f"; {differs}" if differs else "")
    return Verdict(key, what, differs, gap)


def _numbers(array: Array, left: Sequence[Any], right: Sequence[Any], tolerance: Tolerance) -> tuple[str, float]:
    worst, where, outside, nans, first_nan = -1.0, 0, 0, 0, -1
    for index, (one, other) in enumerate(zip(left, right, strict=True)):
        if one == other:
            continue
        gap = abs(one - other)
        if gap != gap:
            if (one != one) != (other != other):
                nans += 1
                first_nan = index if first_nan < 0 else first_nan
            continue
        if gap > tolerance.allowed(other):
            outside += 1
        if gap > worst:
            worst, where = gap, index
    if nans:
        place = f"{array.place(first_nan)}: {left[first_nan]!r} against {right[first_nan]!r}"
        return f"{nans} of {array.size} are NaN on one side only, first at {place}", max(worst, 0.0)
    if not outside:
        return "", max(worst, 0.0)
    most = f"most at {array.place(where)}: {left[where]:.9g} against {right[where]:.9g}"
    return f"{outside} of {array.size} differ, {most}, {_off(worst, tolerance.allowed(right[where]))}", worst


def _elements(array: Array, left: Sequence[Any], right: Sequence[Any]) -> tuple[str, float]:
    places = [index for index, pair in enumerate(zip(left, right, strict=True)) if pair[0] != pair[1]]
    if not places:
        return "", 0.0
    first = places[0]
    shown = f"{_short(left[first])} against {_short(right[first])}"
    return f"{len(places)} of {array.size} differ, first at {array.place(first)}: {shown}", 0.0


def _off(gap: float, allowed: float) -> str:
    return f"off by {gap:.3g} (allowed {allowed:.3g})"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _about(value: Any) -> str:
    return str(value) if isinstance(value, Array) else type(value).__name__ if value is not None else "null"


def _short(value: Any) -> str:
    text = repr(value) if isinstance(value, str | bytes | int | float | bool | None) else str(value)
    return text if len(text) <= 60 else text[:57] + "..."


def flat(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """A JSON value by key, lists of numbers as arrays: the counterpart of the worker's `leaves`."""
    if isinstance(value, dict):
        for key, entry in value.items():
            yield from flat(entry, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        made = of_value(value) if value and not _has_text(value) else None
        if made is not None:
            yield path, made
            return
        for index, entry in enumerate(value):
            yield from flat(entry, f"{path}[{index}]")
    else:
        yield path, value


def _has_text(value: Any) -> bool:
    while isinstance(value, list) and value:
        value = value[0]
    return isinstance(value, str)
