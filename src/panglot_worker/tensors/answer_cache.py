"""Answers with one output of numbers in JSON: the text before the numbers is always the same, and is cached."""

from __future__ import annotations

from typing import Dict, List, Optional, Tuple

from panglot_worker.bodies import jsontext
from panglot_worker.bodies.multipart import Limits
from panglot_worker.tensors import rest
from panglot_worker.tensors.datatypes import DATATYPES, INTEGER, REAL
from panglot_worker.tensors.infer import Wishes
from panglot_worker.tensors.tensors import Shape, Tensor

MOST_KEPT = 64
END = b"}]}"
NUMBERS = frozenset(kind.name for kind in DATATYPES.values() if kind.holds in (INTEGER, REAL))

Described = Tuple[Wishes, str, str, Shape]
"""How the client wants its answer, and the output's name, datatype and shape."""


class AnswerCache:
    """The beginnings of answers."""

    def __init__(self, nan: str, limits: Limits) -> None:
        self.nan, self.limits = nan, limits
        self._beginnings: Dict[Described, bytes] = {}

    def text(self, wishes: Wishes, outputs: List[Tensor]) -> Optional[bytes]:
        """The text that `rest.answer` would write; None where this cache cannot, and `rest.answer` must."""
        if len(outputs) != 1:
            return None
        name, datatype, shape, _ = outputs[0]
        described = (wishes, name, datatype, shape)
        beginning = self._beginnings.get(described) or self._begin(described)
        numbers = jsontext.unguarded(outputs[0].flat()) if beginning else b""
        # Numbers that are not finite are written as null, which has the only `u` there can be.
        if not numbers or b"u" in numbers or len(beginning) + len(numbers) + len(END) > self.limits.output_bytes:
            return None
        return beginning + numbers + END

    def _begin(self, described: Described) -> bytes:
        """Keep the text before the numbers: an answer without numbers, less its end. Empty for other answers."""
        wishes, name, datatype, shape = described
        if wishes.wanted or wishes.binary or wishes.coding or wishes.id or datatype not in NUMBERS:
            return b""
        empty = rest.answer(wishes, [Tensor(name, datatype, shape, b"")], self.nan, self.limits).content
        if len(self._beginnings) >= MOST_KEPT:
            self._beginnings.clear()
        self._beginnings[described] = beginning = bytes(empty)[: -len(b"[]" + END)]
        return beginning
