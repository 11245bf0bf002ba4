"""The datatypes of the protocol: their widths, their form in JSON, and their names in Python."""

from __future__ import annotations

from typing import Any, Dict, FrozenSet, NamedTuple, Tuple

INTEGER, REAL, TRUTH, TEXT = "whole numbers", "numbers", "true or false", "strings"


class Datatype(NamedTuple):
    """A datatype of tensors. `code` is its letter in `array` and `memoryview`; empty where they have none."""

    name: str
    width: int
    code: str
    holds: str
    """Its form in JSON, in words; empty: JSON has none, it travels as bytes only."""
    accepts: FrozenSet[Any] = frozenset()
    """The types of the values JSON may hold."""
    numpy: str = ""
    least: int = 0
    most: int = 0


def _integer(name: str, width: int, code: str) -> Datatype:
    signed, bits = name.startswith("INT"), width * 8
    least, most = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    return Datatype(
        name, width, code, INTEGER, frozenset([int]), "<%s%d" % ("i" if signed else "u", width), least, most
    )


_NUMBERS: FrozenSet[Any] = frozenset([int, float])
_ALL: Tuple[Datatype, ...] = (
    Datatype("BOOL", 1, "?", TRUTH, frozenset([bool]), "?"),
    *(_integer("UINT%d" % (8 * width), width, code) for width, code in ((1, "B"), (2, "H"), (4, "I"), (8, "Q"))),
    *(_integer("INT%d" % (8 * width), width, code) for width, code in ((1, "b"), (2, "h"), (4, "i"), (8, "q"))),
    Datatype("FP16", 2, "", "", numpy="<f2"),
    Datatype("BF16", 2, "", ""),
    Datatype("FP32", 4, "f", REAL, _NUMBERS, "<f4"),
    Datatype("FP64", 8, "d", REAL, _NUMBERS, "<f8"),
    Datatype("BYTES", 0, "", TEXT, frozenset([str])),
)

DATATYPES: Dict[str, Datatype] = {kind.name: kind for kind in _ALL}
BY_NUMPY: Dict[Tuple[str, int], str] = {
    (kind.numpy.lstrip("<")[0] if kind.numpy != "?" else "b", kind.width): kind.name for kind in _ALL if kind.numpy
}
"""Names of datatypes by the kind and the width of numpy's."""
LARGEST_FP32 = 3.4028235677973366e38
"""Larger numbers are no FP32: they would be rounded to infinity."""
