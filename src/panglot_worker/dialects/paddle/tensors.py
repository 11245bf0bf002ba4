"""Tensors for Paddle's scripts: arrays become files of numpy, as the scripts are given them; results are arrays."""

from __future__ import annotations

import io
from typing import Dict, List, Sequence

from panglot_worker.bodies import codec
from panglot_worker.bodies.magic import media_type
from panglot_worker.dialects.paddle.requests import Reader, Value, Wanted
from panglot_worker.tensors.infer import Infer
from panglot_worker.tensors.tensors import Tensor, TensorSpec


def inputs_of(infer: Infer, reader: Reader) -> Dict[str, Value]:
    """The inputs of a script: a single element of BYTES is the body itself. Raises ClientError."""
    tensors = list(infer.inputs.values())
    if len(tensors) == 1 and tensors[0].datatype == "BYTES" and len(tensors[0].data) == 1:
        content = tensors[0].data[0]
        return reader.decode(media_type(content), content)
    return reader.from_fields({tensor.name: _file(tensor) for tensor in tensors})


def _file(tensor: Tensor) -> codec.File:
    """An element of BYTES is the content of a file; an array is a .npy."""
    if tensor.datatype == "BYTES" and len(tensor.data) == 1:
        return codec.File("", media_type(tensor.data[0]), tensor.data[0])
    import numpy

    buffer = io.BytesIO()
    array = tensor.array()
    numpy.save(buffer, array.astype("S") if tensor.datatype == "BYTES" else array, allow_pickle=False)
    return codec.File(tensor.name + ".npy", codec.OCTETS, buffer.getvalue())


def described(wanted: Sequence[Wanted]) -> List[TensorSpec]:
    """What the script takes; an array may replace a file."""
    return [TensorSpec(field.name, "BYTES", (1,)) for field in wanted]
