"""Requests and answers over HTTP: JSON, with tensors in it or as bytes behind it."""

from __future__ import annotations

import zlib
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from panglot_worker.bodies import jsontext
from panglot_worker.bodies.multipart import Limits
from panglot_worker.errors import ClientError
from panglot_worker.line import wire
from panglot_worker.line.many_buffers import many
from panglot_worker.tensors import tensors
from panglot_worker.tensors.datatypes import DATATYPES
from panglot_worker.tensors.infer import (
    Infer,
    WantedOutput,
    Wishes,
    check_wanted,
    gathered,
    refuse_unsupported,
    unfolded,
)
from panglot_worker.tensors.tensors import Tensor, TensorSpec

WINDOWS = {"gzip": 31, "deflate": 15}
"""The window bits with which zlib reads and writes each coding."""
LENGTH_HEADER = "Inference-Header-Content-Length"
LONGEST_LENGTH = 18
"""Digits of a length: Python itself refuses to read texts of thousands of them."""
FAST = 1


class RestReader(NamedTuple):
    """Reads requests. `inputs` are the model's own description, for requests that are nothing but bytes."""

    limits: Limits
    inputs: Sequence[TensorSpec]

    def read(self, head: wire.Head, body: wire.Buffer) -> Infer:
        """The request. Raises ClientError."""
        view = memoryview(body)
        if head.encoding not in (b"", b"identity"):
            view = memoryview(inflated(head.encoding.decode("latin-1").lower(), view, self.limits.output_bytes))
        if head.json_length == b"0":
            return self._raw(view, _wishes(head))
        size = _json_size(head.json_length, len(view))
        if size > self.limits.json_bytes:
            raise ClientError("the JSON of the request is larger than %d bytes" % self.limits.json_bytes, 413)
        value = jsontext.loads(view[:size] if size < len(view) else view, self.limits.json_depth)
        return _request(value, view[size:], head)

    def _raw(self, body: memoryview, wishes: Wishes) -> Infer:
        """A request that is nothing but the bytes of the only input. All outputs come back as bytes."""
        if len(self.inputs) != 1:
            raise ClientError("a request without JSON needs a model with one input; this one has %d" % len(self.inputs))
        spec = self.inputs[0]
        if spec.datatype == "BYTES":
            tensor = tensors.from_elements(spec.name, (1,) * max(1, len(spec.shape)), [bytes(body)])
        else:
            tensor = tensors.from_raw(spec.name, spec.datatype, raw_shape(spec, len(body)), body)
        return Infer(wishes._replace(binary=True), {spec.name: tensor}, {})


def raw_shape(spec: TensorSpec, size: int) -> Tuple[int, ...]:
    """The shape of so many bytes, with 1 for a free first size where another is free too. Raises ClientError."""
    sizes = list(spec.shape)
    free = [at for at, known in enumerate(sizes) if known < 0]
    if len(free) > 1 and free[0] == 0:
        sizes[0] = 1
        free = free[1:]
    if len(free) > 1:
        raise ClientError("the shape of '%s', %s, does not follow from %d bytes" % (spec.name, sizes, size))
    if free:
        rest = tensors.count_of([known for known in sizes if known >= 0]) * DATATYPES[spec.datatype].width
        sizes[free[0]] = size // rest if rest else 0
    return tuple(sizes)


def _json_size(given: bytes, size: int) -> int:
    """The length of the JSON part. Raises ClientError when the header for it is no number, or beyond the body."""
    if not given:
        return size
    if not given.isdigit() or len(given) > LONGEST_LENGTH or int(given) > size:
        raise ClientError("%s is %s, and the body has %d bytes" % (LENGTH_HEADER, given[:40].decode("latin-1"), size))
    return int(given)


def _wishes(head: wire.Head, known: str = "", wanted: Tuple[WantedOutput, ...] = (), binary: bool = False) -> Wishes:
    coding = only_coding(head.accept_encoding.decode("latin-1")) if head.accept_encoding else ""
    model, version = str(head.model, "utf-8", "replace"), str(head.version, "utf-8", "replace")
    return Wishes(head.form, model, version, known, wanted, binary, coding)


def _request(value: Any, behind: memoryview, head: wire.Head) -> Infer:
    if type(value) is not dict or type(value.get("inputs")) is not list:
        raise ClientError('the request must be a JSON object with "inputs", a list')
    given = "" if value.get("id") is None else value["id"]
    if type(given) is not str:
        raise ClientError("the id must be a string")
    parameters = _object(value.get("parameters"), "parameters")
    inputs, at = [], 0
    for described in value["inputs"]:
        tensor, at = _input(described, behind, at)
        inputs.append(tensor)
    if at != len(behind):
        raise ClientError("%d bytes behind the JSON belong to no input" % (len(behind) - at))
    binary = parameters.get("binary_data_output", False) is True
    return Infer(_wishes(head, given, _wanted(value.get("outputs")), binary), gathered(inputs), parameters)


def _input(given: Any, behind: memoryview, at: int) -> Tuple[Tensor, int]:
    """One input, and how far the bytes behind the JSON are used up."""
    if type(given) is not dict or type(given.get("name")) is not str:
        raise ClientError('every input needs a "name", a "datatype" and a "shape"')
    name = given["name"]
    datatype = tensors.known(name, given.get("datatype")).name
    shape = tensors.checked_shape(name, given.get("shape"))
    parameters = _object(given.get("parameters"), "the parameters of input '%s'" % name)
    refuse_unsupported(parameters, "input '%s'" % name)
    if "binary_data_size" not in parameters:
        if "data" not in given:
            raise ClientError("input '%s' has neither data nor binary_data_size" % name)
        return unfolded(tensors.from_json(name, datatype, shape, given["data"]), parameters), at
    if "data" in given:
        raise ClientError("input '%s' has both data and binary_data_size" % name)
    size = parameters["binary_data_size"]
    if type(size) is not int or not 0 <= size <= len(behind) - at:
        about = (name, size, len(behind) - at)
        raise ClientError("input '%s' has binary_data_size %.40r, and %d bytes follow the JSON for it" % about)
    return tensors.from_raw(name, datatype, shape, behind[at : at + size]), at + size


def _wanted(outputs: Any) -> Tuple[WantedOutput, ...]:
    if outputs is None:
        return ()
    if type(outputs) is not list:
        raise ClientError("outputs must be a list")
    outputs_wanted: List[WantedOutput] = []
    for output in outputs:
        if type(output) is not dict or type(output.get("name")) is not str:
            raise ClientError('every requested output needs a "name"')
        parameters = _object(output.get("parameters"), "the parameters of output '%s'" % output["name"])
        refuse_unsupported(parameters, "output '%s'" % output["name"])
        binary = parameters.get("binary_data")
        outputs_wanted.append(WantedOutput(output["name"], None if binary is None else binary is True))
    return check_wanted(outputs_wanted)


def _object(value: Any, what: str) -> Dict[str, Any]:
    if value is None:
        return {}
    if type(value) is not dict:
        raise ClientError("%s must be an object" % what)
    return value


# Compression


def inflated(coding: str, body: memoryview, most: int) -> bytes:
    """The decompressed body. Raises ClientError when it was not compressed in this way, or becomes too large."""
    window = WINDOWS.get(coding)
    if window is None:
        raise ClientError("Content-Encoding %.40r is not read here; gzip and deflate are" % coding, 415)
    stream = zlib.decompressobj(window)
    try:
        plain = stream.decompress(body, most)
    except zlib.error:
        raise ClientError("the body is not %s, as its Content-Encoding says" % coding) from None
    if stream.unconsumed_tail:
        raise ClientError("the compressed body holds more than %d bytes" % most, 413)
    if not stream.eof or stream.unused_data:
        raise ClientError("the compressed body is not whole, or more follows it")
    return plain


def only_coding(accepted: str) -> str:
    """The coding of an answer: the one that is named, where exactly one is.

    Client libraries name several of their own accord, and compressing floats costs more than it saves: so a list does
    not count as a wish.
    """
    named = [word.partition(";") for word in accepted.lower().split(",") if word.strip()]
    codings = [name.strip() for name, _, weight in named if weight.replace(" ", "").rstrip("0") not in ("q=", "q=0.")]
    wanted = [coding for coding in codings if coding != "identity"]
    return wanted[0] if len(wanted) == 1 and wanted[0] in WINDOWS else ""


# Answers


class Body(NamedTuple):
    """The body of an answer, its content type, and further header lines."""

    content_type: str
    content: wire.Buffer
    headers: Sequence[str] = ()


def answer(
    wishes: Wishes, outputs: List[Tensor], nan: str, limits: Limits, parameters: Optional[Dict[str, Any]] = None
) -> Body:
    """The answer with these outputs. Raises ClientError for one that JSON cannot hold, EncodeError beyond a limit."""
    rows: List[Dict[str, Any]] = []
    parts: List[Any] = []
    said = {output.name: output.binary for output in wishes.wanted}
    for tensor in outputs:
        row: Dict[str, Any] = {"name": tensor.name, "datatype": tensor.datatype, "shape": list(tensor.shape)}
        binary = said.get(tensor.name)
        if wishes.binary if binary is None else binary:
            raw = tensor.raw()
            row["parameters"] = {"binary_data_size": len(raw)}
            parts.append(raw)
        else:
            row["data"] = json_data(tensor)
        rows.append(row)
    value: Dict[str, Any] = {"model_name": wishes.model, "model_version": wishes.version, "outputs": rows}
    if wishes.id:
        value["id"] = wishes.id
    if parameters:
        value["parameters"] = parameters
    text, warning = _plain_text(value), ""
    if len(text) > limits.output_bytes or not text:
        text, warning = jsontext.dumps(value, str, nan, limits.output_depth, limits.output_bytes)
    headers = ["x-panglot-warning: " + warning] if warning else []
    if not parts:
        return compressed(Body("application/json", text, headers), wishes.coding)
    headers.append("%s: %d" % (LENGTH_HEADER.lower(), len(text)))
    return compressed(Body("application/octet-stream", many(text, *parts), headers), wishes.coding)


def _plain_text(value: Dict[str, Any]) -> bytes:
    """The JSON of an answer whose numbers are all finite, written without guards; empty where they may not be.

    orjson writes numbers that are not finite as null. Nothing else in an answer is null, except inside of a text.
    """
    text = jsontext.unguarded(value)
    return b"" if b"null" in text else text


def json_data(tensor: Tensor) -> List[Any]:
    """The elements of an output in a row. Raises ClientError for those that JSON cannot hold."""
    if not DATATYPES[tensor.datatype].holds:
        message = "output '%s' is %s, which JSON has no form for: ask for it as binary data"
        raise ClientError(message % (tensor.name, tensor.datatype))
    try:
        return tensor.flat()
    except UnicodeDecodeError:
        raise ClientError("output '%s' is no text: ask for it as binary data" % tensor.name) from None


def compressed(body: Body, coding: str) -> Body:
    """The body in the coding that its client named, if it named one."""
    if not coding:
        return body
    stream = zlib.compressobj(FAST, zlib.DEFLATED, WINDOWS[coding])
    content = stream.compress(bytes(body.content)) + stream.flush()
    return Body(body.content_type, content, [*body.headers, "content-encoding: " + coding])
