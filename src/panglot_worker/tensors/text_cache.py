"""Reads requests that differ from an earlier one only in the numbers of their only input.

Clients send the same description again and again, with other numbers in it. The first request is parsed and cached. Of
later ones only the numbers are parsed and checked; where they are wrong, the request is parsed as a whole, which words
the error.
"""

from __future__ import annotations

from typing import Dict, NamedTuple, Optional, Tuple

from panglot_worker.bodies import jsontext
from panglot_worker.bodies.multipart import Limits
from panglot_worker.errors import ClientError
from panglot_worker.line import wire
from panglot_worker.tensors import tensors
from panglot_worker.tensors.datatypes import DATATYPES, INTEGER, REAL, Datatype
from panglot_worker.tensors.infer import REST, Infer, Wishes
from panglot_worker.tensors.tensors import Shape

LONGEST = 65536
"""Bytes of the longest text that is looked up: reading a longer one takes nearly all its time for the numbers."""
MOST_KEPT = 64
DATA = b'"data":'

Surroundings = Tuple[bytes, bytes, bytes]
"""The head of a request behind its id, and its text before and behind the numbers."""


class Known(NamedTuple):
    """The meaning of a text without its numbers."""

    wishes: Wishes
    name: str
    kind: Datatype
    shape: Shape
    elements: int


class TextCache:
    """Parsed requests, by the text around their numbers."""

    def __init__(self, limits: Limits) -> None:
        self.longest = min(limits.json_bytes, LONGEST)
        self.depth = limits.json_depth
        self._known: Dict[Surroundings, Known] = {}

    def read(self, raw_head: bytes, body: wire.Buffer) -> Optional[Infer]:
        """The request, if only its numbers are new and they are right; else None."""
        if not self._known or len(body) > self.longest:
            return None
        surroundings, text = _cut(raw_head, bytes(body))
        known = self._known.get(surroundings)
        # Besides numbers, a list without texts and lists in it may hold true, false and null.
        if known is None or b"u" in text or b"a" in text:
            return None
        wishes, name, kind, shape, elements = known
        try:
            numbers = jsontext.loads(text, self.depth)
            if len(numbers) != elements:
                return None
            return Infer(wishes, {name: tensors.from_numbers(name, kind, shape, numbers)}, {})
        except (ClientError, TypeError):
            return None

    def keep(self, raw_head: bytes, head: wire.Head, body: wire.Buffer, infer: Infer) -> None:
        """Keep a request that was parsed as a whole, if the next may differ only in its numbers."""
        if len(body) > self.longest or not _is_plain(head, infer):
            return
        surroundings, _ = _cut(raw_head, bytes(body))
        # Two numbers: with one alone, data elsewhere that is this very number would pass.
        if all(self._holds(surroundings, number) for number in (0, 1)):
            if len(self._known) >= MOST_KEPT:
                # All at once: hostile clients can fill the cache, and a cleverer rule would cost each request.
                self._known.clear()
            (tensor,) = infer.inputs.values()
            kind, elements = DATATYPES[tensor.datatype], tensors.count_of(tensor.shape)
            self._known[surroundings] = Known(infer.wishes, tensor.name, kind, tensor.shape, elements)

    def _holds(self, surroundings: Surroundings, number: int) -> bool:
        """Whether a number in that place is all the data of the only input, not another list or part of a name."""
        _, before, behind = surroundings
        try:
            (given,) = jsontext.loads(b"%b[%d]%b" % (before, number, behind), self.depth)["inputs"]
            return tensors.flattened("", given["data"]) == [number]
        except (ClientError, TypeError, KeyError, ValueError):
            return False


def _cut(raw_head: bytes, text: bytes) -> Tuple[Surroundings, bytes]:
    """The text around the first innermost list behind `"data"`, and the list; empty where there is none."""
    data = text.find(DATA)
    end = text.find(b"]", data) + 1
    start = text.rfind(b"[", data, end) if data >= 0 else -1
    if start < 0:
        return (b"", b"", b""), b""
    return (raw_head[raw_head.find(b"\0") :], text[:start], text[end:]), text[start:end]


def _is_plain(head: wire.Head, infer: Infer) -> bool:
    """Whether a request has one input of numbers, and nothing that is new each time."""
    if head.form != REST or head.json_length or head.encoding or head.fetched or head.traceparent or head.headers:
        return False
    if len(infer.inputs) != 1 or infer.parameters or infer.wishes.id:
        return False
    return all(DATATYPES[tensor.datatype].holds in (INTEGER, REAL) for tensor in infer.inputs.values())
