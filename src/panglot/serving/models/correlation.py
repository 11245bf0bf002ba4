"""Which requests with tensors belong together: requests with the same value of a parameter. Only this is read."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from panglot.engine.call import Call, Fault
from panglot.web.json_fields import SMALL, read_fields
from panglot.web.v2.routes import GRPC, REST, STREAM
from panglot_worker.line import wire
from panglot_worker.tensors import protobuf

MOST_FIELDS = 4096
"""Fields of a message among which its parameters are looked for."""
PARAMETERS = 4
"""The number of the field of a message with the map of its parameters."""
LONGEST_LENGTH = 18
"""Digits of a length, as the worker takes them too."""
TOO_LONG = Fault(
    413, "body_too_large",
    f"this model has several workers, and a request whose JSON has more than {SMALL} bytes cannot be told to which it "
    "belongs; send its tensors as binary data, or serve the model with one worker",
)  # fmt: skip
COMPRESSED = Fault(
    415, "content_encoding",
    "this model has several workers, and a compressed request cannot be told to which it belongs; send it as it is",
)  # fmt: skip


class ParameterReader:
    """Reads one parameter of requests with tensors, as the key of their calls."""

    def __init__(self, name: str, max_depth: int) -> None:
        self.name = name
        self.max_depth = max_depth

    def __call__(self, call: Call) -> str | Fault:
        """The value as text; empty if there is none, or if the request is wrong: then the worker tells the error."""
        head = wire.Head.unpack(call.head)
        if not head.form:
            return ""
        if head.encoding:
            return COMPRESSED
        if head.form in (GRPC, STREAM):
            return self._of_message(call)
        length = _length_of_json(head.json_length, call.size)
        if length > SMALL:
            return TOO_LONG
        text = _joined(call.body())[:length]
        if head.form != REST:
            return _text(read_fields(text, (self.name,), self.max_depth).get(self.name))
        parameters = read_fields(text, ("parameters",), self.max_depth).get("parameters")
        return _text(parameters.get(self.name)) if isinstance(parameters, Mapping) else ""

    def _of_message(self, call: Call) -> str:
        body: Any = call.body()
        # Pieces in several buffers are cut where tensors begin: they can be read as they are. Others are cut anywhere.
        body = SimpleNamespace(buffers=body) if call.buffer is not None and len(body) > 1 else _joined(body)
        try:
            for field, _, content in itertools.islice(protobuf.fields_of(body), MOST_FIELDS):
                if field == PARAMETERS:
                    key, value = _entry(content)
                    if key == self.name:
                        return value
        except (ValueError, IndexError, TypeError):
            pass
        return ""


def _length_of_json(given: bytes, size: int) -> int:
    """How many bytes of a body are JSON; none if the header for it is wrong."""
    if not given:
        return size
    # The number of digits first: Python refuses to read very long numbers.
    fits = given.isdigit() and len(given) <= LONGEST_LENGTH and int(given) <= size
    return int(given) if fits else 0


def _joined(pieces: Sequence[wire.Buffer]) -> wire.Buffer:
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _text(value: object) -> str:
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""


def _entry(content: memoryview) -> tuple[str, str]:
    """The key and the value of an entry of parameters; a value that is neither text nor a number is empty."""
    key = value = ""
    for field, _, part in protobuf.fields(content):
        if field == 1:
            key = str(part, "utf-8")
        elif field == 2:
            for kind, wire_type, inner in protobuf.fields(part):
                if kind == 3:
                    value = str(inner, "utf-8")
                elif kind in (2, 5) and wire_type == protobuf.VARINT:
                    value = str(protobuf.signed(inner) if kind == 2 else inner)
    return key, value
