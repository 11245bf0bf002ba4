"""What a handler gets for a request: a dict, and the headers (docs/dialects/torchserve.md has the table)."""

from __future__ import annotations

import json
from typing import Any, Dict, Iterator, Sequence, Tuple
from urllib.parse import parse_qsl

from panglot_worker.bodies import jsontext, multipart
from panglot_worker.bodies.multipart import Body, Limits
from panglot_worker.compat.model_context import RequestHeaders, RequestProcessor, header_pairs
from panglot_worker.dialects.base import Request
from panglot_worker.errors import ClientError
from panglot_worker.tensors import protobuf

PREDICT, EXPLAIN, INVOKE = b"/predictions", b"/explanations", b"/invocations"
"""Routes, as the front half of this dialect names them."""
KSERVE = b"/v1/models/"
"""What paths of KServe have, behind which no rest is named."""
GRPC = b"application/grpc"
JSON, FORM, URLENCODED = "application/json", "multipart/form-data", "application/x-www-form-urlencoded"
INPUT, SEQUENCE = 3, 4
"""The fields of a PredictionsRequest that are the map of inputs, and the id of a sequence."""
KEY, VALUE = 1, 2
"""The fields of an entry of a map."""
DESCRIBE = b"/describe"
IN_SEQUENCE = b"/StreamPredictions2"
NO_SEQUENCE = "no_sequence"
"""The end of a method whose messages name a sequence, and the code of the refusal of one that does not."""
NO_REQUEST = "this is no PredictionsRequest: %s"


class Incoming:
    """A request for the handler, and what becomes of it in a call."""

    __slots__ = ("headers", "id", "processor", "request", "row", "sent")

    def __init__(self, row: Dict[str, Any], headers: Dict[str, Any], request: Request) -> None:
        self.row = row
        self.headers = headers
        self.id = request.head.request_id.decode("latin-1")
        self.request = request
        self.processor = RequestProcessor(headers)
        """What the handler says about the answer, in the current call."""
        self.sent = False
        """Whether a part of the answer is on its way, so that the call cannot be repeated."""


class Reader:
    """Makes the dict of a request. `decodes` is `decode_input_request` of config.properties."""

    def __init__(self, limits: Limits, decodes: bool) -> None:
        self.limits = limits
        self.decodes = decodes

    def read(self, request: Request) -> Incoming:
        """What the handler gets. Raises ClientError."""
        head = request.head
        row: Dict[str, Any] = {}
        headers = RequestHeaders()
        if head.content_type == GRPC:
            parts: Iterator[Tuple[str, str, Body]] = _inputs(request.body)
            sequence = _sequence(request.body, head.route.endswith(IN_SEQUENCE))
            if sequence:
                headers["ts_request_sequence_id"] = sequence
        elif head.route == DESCRIBE:
            parts = iter(())
            headers["describe"] = "True"
        else:
            if head.route == INVOKE and head.query:
                for name, text in parse_qsl(head.query.decode("latin-1"), keep_blank_values=True):
                    row[name] = bytearray(text.encode("utf-8", "surrogateescape"))
                    headers[name] = {"content-type": ""}
            parts = self._parts(head.content_type.decode("latin-1"), request.body)
        for name, kind, content in parts:
            row[name] = self._value(kind, content)
            headers[name] = {"content-type": kind}
        if head.route not in (DESCRIBE, INVOKE):
            headers["explain"] = "True" if head.route == EXPLAIN else "False"
        headers.update(header_pairs(head.headers))
        if head.route in (PREDICT, EXPLAIN) and KSERVE not in head.path:
            headers["url_path"] = head.path_values.get("url_path", "") if head.segments else ""
        incoming = Incoming(row, headers, request)
        request.context = incoming
        return incoming

    def _parts(self, content_type: str, body: Body) -> Iterator[Tuple[str, str, Body]]:
        """Name, type and content of each part of a body; a body that is no form is one part, `body`."""
        kind = content_type.partition(";")[0].strip()
        if kind == FORM:
            for part in multipart.parse(content_type, body, self.limits):
                yield part.name, part.content_type if part.filename is not None else "", part.data
        elif kind == URLENCODED:
            # As the original's form decoder: a word without `=` is a name with nothing, which scripts never see.
            text = bytes(body).decode("utf-8", "replace")
            for name, value in parse_qsl(text, max_num_fields=self.limits.form_fields):
                yield name, "", value.encode("utf-8", "surrogateescape")
        else:
            yield "body", kind, body

    def _value(self, kind: str, content: Body) -> Any:
        """JSON as its value, text as str, everything else as a bytearray. Types are compared with their case."""
        if self.decodes and kind == JSON:
            return self._json(content)
        if self.decodes and kind.startswith("text"):
            try:
                return bytes(content).decode("utf-8")
            except UnicodeDecodeError:
                return bytearray(content)
        return bytearray(content)

    def _json(self, content: Body) -> Any:
        """The value; the bytes of what is no JSON, as in the original. Raises ClientError for JSON beyond a limit."""
        if len(content) > self.limits.json_bytes:
            raise ClientError("the JSON body is larger than max_json, %d bytes" % self.limits.json_bytes, 413)
        try:
            return jsontext.loads(content, self.limits.json_depth)
        except jsontext.LongInteger:
            # `json.loads` refuses the longest of them too, and such a body would pass as bytes below.
            raise
        except ClientError as refused:
            try:
                json.loads(bytes(content))
            except (ValueError, RecursionError):
                return bytearray(content)
            raise refused


def _sequence(message: Body, is_needed: bool) -> str:
    """The id of the sequence that a PredictionsRequest is of; empty: of none. Raises ClientError."""
    sequences = [bytes(value) for _, value in _contents(message, (SEQUENCE,))]
    if is_needed and not (sequences and sequences[-1]):
        raise ClientError("Parameter sequenceId is required.", code=NO_SEQUENCE)
    return sequences[-1].decode("utf-8", "replace") if sequences else ""


def _inputs(message: Body) -> Iterator[Tuple[str, str, Body]]:
    """The inputs of a PredictionsRequest. Raises ClientError."""
    for _, entry in _contents(message, (INPUT,)):
        pair = dict(_contents(entry, (KEY, VALUE)))
        try:
            yield bytes(pair.get(KEY, b"")).decode("utf-8"), "", pair.get(VALUE, b"")
        except UnicodeDecodeError as error:
            raise ClientError(NO_REQUEST % error) from None


def _contents(message: Body, wanted: Sequence[int]) -> Iterator[Tuple[int, memoryview]]:
    """These fields of a message, all of which hold bytes. Raises ClientError where one holds anything else."""
    try:
        for number, kind, value in protobuf.fields(memoryview(message)):
            if number in wanted:
                # `bytes` of a number, which a client may put here, is so many zeros.
                if kind != protobuf.LENGTH:
                    raise protobuf.Malformed("field %d has the wire type %d" % (number, kind))
                yield number, value
    except (protobuf.Malformed, IndexError) as error:
        raise ClientError(NO_REQUEST % error) from None
