"""What a client gets for an element of the list that a handler returned."""

from __future__ import annotations

import io
import sys
from typing import Any, List, Tuple

from panglot_worker.bodies.multipart import Limits
from panglot_worker.bodies.standard_json import StandardJson
from panglot_worker.compat.model_context import RequestProcessor
from panglot_worker.dialects.base import Answer, Request, warned
from panglot_worker.dialects.torchserve.requests import GRPC
from panglot_worker.errors import EncodeError
from panglot_worker.line import wire
from panglot_worker.tensors import protobuf

JSON, TEXT, OCTETS = "application/json", "text/plain; charset=utf-8", "application/octet-stream"
OWN = ("content-type", "ts_stream_next")
"""Headers of the context that are no lines of the answer."""


class Unsupported(EncodeError):
    """A value that neither JSON nor the platform knows."""

    def __init__(self, value: Any) -> None:
        problem = "the handler returned a %s, which is nothing that JSON has" % type(value).__name__
        super().__init__(problem, "return dicts, lists, texts, numbers or bytes")


class Writer:
    """Writes answers: bytes and texts as they are, tensors as `torch.save` writes them, the rest as indented JSON."""

    def __init__(self, limits: Limits, nan: str, strict: bool) -> None:
        self.limits = limits
        self._json = StandardJson(limits, nan, strict, indent=2)

    def answer(self, value: Any, processor: RequestProcessor, request: Request) -> Answer:
        """The answer with the status and headers that the handler has set. Raises EncodeError."""
        kind, body, warning = self._body(value)
        if request.head.content_type == GRPC:
            return Answer("application/grpc", protobuf.message(1, bytes(body)))
        lines = head_lines(processor)
        content_type = str(processor.get_response_header("content-type") or kind)
        status = processor.get_response_status_code()
        if type(status) is not int or not 200 <= status <= 599:
            raise EncodeError("its status is %r, which is none of an answer" % (status,))
        return Answer(content_type, body, status, (*lines, *warned(warning)))

    def _body(self, value: Any) -> Tuple[str, wire.Buffer, str]:
        if isinstance(value, (bytes, bytearray)):
            return OCTETS, self._limited(bytes(value)), ""
        if isinstance(value, str):
            return TEXT, self._limited(value.encode("utf-8", "surrogatepass")), ""
        torch: Any = sys.modules.get("torch")
        if torch is not None and isinstance(value, getattr(torch, "Tensor", ())):
            out = io.BytesIO()
            torch.save(value, out)
            return OCTETS, self._limited(out.getvalue()), ""
        try:
            body, warning = self._json.encode(value)
        except TypeError:
            raise Unsupported(value) from None
        return JSON, body, warning

    def _limited(self, body: bytes) -> bytes:
        if len(body) > self.limits.output_bytes:
            raise EncodeError("it is larger than %d bytes" % self.limits.output_bytes)
        return body


def head_lines(processor: RequestProcessor) -> List[str]:
    """The header lines that a handler has set."""
    headers = processor.get_response_headers()
    return ["%s: %s" % (name, value) for name, value in headers.items() if name.lower() not in OWN]
