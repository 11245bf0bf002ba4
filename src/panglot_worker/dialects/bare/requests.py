"""A request as the inputs of a model: JSON by name, an array or a picture as the whole body, a form of them."""

from __future__ import annotations

import base64
import binascii
import io
import math
from typing import Any, Dict, List, NamedTuple, Sequence

from panglot_worker.bodies import codec
from panglot_worker.dialects.bare import numbers
from panglot_worker.dialects.bare.pictures import PictureInput, is_picture
from panglot_worker.errors import ClientError
from panglot_worker.runtimes.base import FREE, NUMPY, Arrays, ModelTensor, shown

NPY = b"\x93NUMPY"
URLENCODED = "application/x-www-form-urlencoded"


class InputReader(NamedTuple):
    """Reads what a model takes out of requests. Every method raises ClientError."""

    inputs: Sequence[ModelTensor]
    pictures: Dict[str, PictureInput]
    any_name: bool
    limits: codec.Limits

    def decode(self, content_type: str, body: codec.Body) -> Arrays:
        """The inputs in a body of any type."""
        if not content_type or content_type.startswith(URLENCODED):
            # `curl --data-binary @file` sends this type unless it is given another.
            is_file = bytes(body[: len(NPY)]) == NPY or (self.pictures and is_picture(body))
            content_type = codec.OCTETS if is_file else content_type
        sent = codec.decode(content_type, body, self.limits)
        return self.from_fields(sent) if isinstance(sent, dict) else {self.only.name: self._value(self.only, sent)}

    @property
    def only(self) -> ModelTensor:
        if len(self.inputs) != 1:
            raise ClientError("the model has %d inputs: send %s" % (len(self.inputs), self.described()))
        return self.inputs[0]

    def from_fields(self, fields: Dict[str, Any]) -> Arrays:
        """The inputs in an object, by name; all of them, with the same number of rows where they have rows."""
        if len(fields) == 1 and len(self.inputs) == 1 and self.any_name:
            fields = {self.inputs[0].name: next(iter(fields.values()))}
        known = {spec.name: spec for spec in self.inputs}
        for name in fields:
            if name not in known:
                raise ClientError("the model has no input %r: send %s" % (name[:80], self.described()))
        for name in known:
            if name not in fields:
                raise ClientError("%s is missing: send %s" % (name, self.described()))
        return same_rows(self.inputs, {name: self._value(known[name], fields[name]) for name in known})

    def _value(self, spec: ModelTensor, sent: Any) -> Any:
        picture = self.pictures.get(spec.name)
        if isinstance(sent, codec.File):
            return self._from_bytes(spec, sent.bytes)
        if isinstance(sent, str) and picture is not None:
            return picture.array(_from_base64(spec, sent))
        if isinstance(sent, list) and sent and picture is not None and all(isinstance(text, str) for text in sent):
            return joined_pictures([picture.array(_from_base64(spec, text)) for text in sent], spec)
        return numbers.tensor(spec, sent)

    def _from_bytes(self, spec: ModelTensor, content: bytes) -> Any:
        if content.startswith(NPY) and spec.datatype != "BYTES":
            return numbers.fitted(spec, numbers.converted(spec, npy_file(spec, content)))
        picture = self.pictures.get(spec.name)
        if picture is not None and is_picture(content):
            return picture.array(content)
        return raw(spec, content, picture is not None)

    def described(self) -> str:
        shapes = ", ".join("%s %s %s" % (spec.name, spec.datatype, shown(spec.shape)) for spec in self.inputs)
        return "a JSON object with %s" % shapes


def same_rows(inputs: Sequence[ModelTensor], arrays: Arrays) -> Arrays:
    """The arrays, if all that have rows have as many. Raises ClientError."""
    counts = {spec.name: len(arrays[spec.name]) for spec in inputs if spec.shape and spec.shape[0] == FREE}
    # Beside an input of a fixed first size, a free one need not count rows.
    if len(inputs) == len(counts) and len(set(counts.values())) > 1:
        raise ClientError("the inputs differ in their rows: %s"
                          % ", ".join("%s has %d" % pair for pair in counts.items()))  # fmt: skip
    return arrays


def npy_file(spec: ModelTensor, content: bytes) -> Any:
    """The array in a .npy file; no memory is taken before its length is checked. Raises ClientError."""
    import numpy
    from numpy.lib import format as npy

    file = io.BytesIO(content)
    readers = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    try:
        shape, by_column, dtype = readers[npy.read_magic(file)](file)
        count = math.prod(shape)
        if dtype.kind not in "biuf":
            raise ValueError("it holds no numbers")
        if len(content) - file.tell() != count * dtype.itemsize:
            raise ValueError("its size is not that of its shape")
        array = numpy.frombuffer(content, dtype, count, file.tell())
        return array.reshape(shape, order="F" if by_column else "C")
    except Exception as error:  # numpy's reader of headers raises whatever Python's parser does.
        raise ClientError("%s is no whole .npy file of numbers: %s" % (spec.name, str(error)[:100])) from None


def raw(spec: ModelTensor, content: bytes, picture: bool = False) -> Any:
    """The bytes of an array as they are in memory; its shape must follow from their number. Raises ClientError."""
    import numpy

    width = numpy.dtype(NUMPY[spec.datatype]).itemsize
    wanted = "%s of %s %s%s" % (spec.name, spec.datatype, shown(spec.shape), ", or an image" if picture else "")
    free = [at for at, size in enumerate(spec.shape or ()) if size == FREE]
    if spec.datatype in ("BYTES", "BF16") or spec.sequence or spec.shape is None or len(free) > 1:
        raise ClientError("send JSON with %s" % wanted)
    row = width * int(numpy.prod([size for size in spec.shape if size != FREE], dtype="int64"))
    rows, rest = divmod(len(content), row) if row else (0, 1)
    if rest or (not free and rows != 1):
        raise ClientError("%d bytes are no array of %s" % (len(content), wanted))
    shape = [rows if size == FREE else size for size in spec.shape]
    return numpy.frombuffer(content, NUMPY[spec.datatype]).reshape(shape)


def joined_pictures(parts: List[Any], spec: ModelTensor) -> Any:
    """Several pictures as the rows of one array. Raises ClientError where they differ in size."""
    import numpy

    if len({part.shape for part in parts}) > 1:
        raise ClientError("the images for %s differ in size, and the model does not say which it takes" % spec.name)
    return numbers.fitted(spec, numpy.concatenate(parts))


def _from_base64(spec: ModelTensor, text: str) -> bytes:
    if text.startswith("data:"):
        text = text.partition(",")[2]
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        raise ClientError("%s takes numbers, or an image in base64, and this is not base64" % spec.name) from None
