"""A script's result as tensors: arrays by name, one array, lists of numbers, text; any other value as JSON text."""

from __future__ import annotations

from array import array
from typing import Any, Callable, Dict, List, Optional, Tuple

from panglot_worker.tensors.datatypes import BY_NUMPY, DATATYPES
from panglot_worker.tensors.tensors import Shape, Tensor, nested_elements

OUTPUT = "output"
"""The name of a script's only output, where the script names none."""
_SCALARS = {bool: "BOOL", int: "INT64", float: "FP64", str: "BYTES", bytes: "BYTES"}

Written = Callable[[Any], bytes]
"""Writes a value as the text, or bytes, that the dialect's clients get."""


def tensors_of(value: Any, written: Written, lone: Shape = (1,)) -> List[Tensor]:
    """The tensors of a script's result: one for each name of a dict, else one, called `output`.

    `lone` is the shape of a number, or a text, that is no list.
    """
    if isinstance(value, dict) and value and all(isinstance(name, str) for name in value):
        return [tensor_of(name, part, written, lone) for name, part in value.items()]
    return [tensor_of(OUTPUT, value, written, lone)]


def tensor_of(name: str, value: Any, written: Written, lone: Shape = (1,)) -> Tensor:
    """The tensor of one value. A value that is none becomes BYTES: the text that the dialect writes for it."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return of_bytes(name, bytes(value), lone)
    tensor = from_array(name, value) if hasattr(value, "dtype") else from_lists(name, value, lone)
    return of_bytes(name, written(value), lone) if tensor is None else tensor


def of_bytes(name: str, content: bytes, shape: Shape = (1,)) -> Tensor:
    """A tensor of one element of BYTES."""
    return Tensor(name, "BYTES", shape, [content])


def from_array(name: str, value: Any) -> Optional[Tensor]:
    """The tensor of an array of numpy, or of a framework's tensor; None for a type that the protocol lacks."""
    value = as_numpy(value)
    if value is None:
        return None
    dtype, shape = value.dtype, value.shape
    datatype = BY_NUMPY.get((dtype.kind, dtype.itemsize))
    if datatype is None:
        if dtype.kind in "OUS":
            elements = [_element(element) for element in value.ravel().tolist()]
            return None if None in elements else Tensor(name, "BYTES", shape, elements)
        if dtype.name != "bfloat16":
            return None
        datatype = "BF16"
    if not value.size:
        return Tensor(name, datatype, shape, b"")
    if dtype.byteorder == ">":
        value = value.astype(dtype.newbyteorder("<"))
    return Tensor(name, datatype, shape, memoryview(value.ravel().view("u1")))


def as_numpy(value: Any) -> Any:
    """An array of numpy with the elements of this one; None where it cannot be made one."""
    if type(value).__module__ == "numpy":
        return value if hasattr(value, "reshape") and hasattr(value, "flags") else None
    try:
        import numpy

        for step in ("detach", "cpu"):
            value = getattr(value, step)() if hasattr(value, step) else value
        return numpy.asarray(value)
    except Exception:  # noqa: BLE001  values of scripts raise anything
        return None


def _element(value: Any) -> Optional[bytes]:
    if isinstance(value, str):
        return value.encode("utf-8", "replace")
    return value if isinstance(value, bytes) else None


def from_lists(name: str, value: Any, lone: Shape = (1,)) -> Optional[Tensor]:
    """The tensor of a number, a text, or lists of them that are all alike; None for everything else."""
    if type(value) in _SCALARS:
        return _of_scalars(name, lone, [value])
    if type(value) not in (list, tuple) or not value:
        return None
    laid_out = _laid_out(value)
    return _of_scalars(name, *laid_out) if laid_out is not None else None


def _laid_out(value: Any) -> Optional[Tuple[Shape, List[Any]]]:
    """The shape of lists in lists and their elements in a row; None where they are not regular."""
    shape: Tuple[int, ...] = (len(value),)
    while value and type(value[0]) in (list, tuple):
        sizes = {len(part) if type(part) in (list, tuple) else -1 for part in value}
        if len(sizes) != 1 or sizes == {-1}:
            return None
        shape = (*shape, *sizes)
        value = [element for part in value for element in part]
    return shape, list(value)


def _of_scalars(name: str, shape: Shape, flat: List[Any]) -> Optional[Tensor]:
    kinds = set(map(type, flat))
    if kinds == {int, float}:
        kinds = {float}
    datatype = _SCALARS.get(next(iter(kinds))) if len(kinds) == 1 else None
    if datatype is None:
        return None
    if datatype == "BYTES":
        elements = [text.encode("utf-8", "replace") if isinstance(text, str) else text for text in flat]
        return Tensor(name, datatype, shape, elements)
    try:
        data = bytes(flat) if datatype == "BOOL" else memoryview(array(DATATYPES[datatype].code, flat)).cast("B")
    except OverflowError:
        return None
    return Tensor(name, datatype, shape, data)


def stacked(rows: List[List[Tensor]]) -> Optional[List[Tensor]]:
    """One tensor of each name from those of several rows, with the rows as first axis; None where they differ."""
    if len(rows) == 1:
        return [Tensor(name, datatype, (1, *shape), data) for name, datatype, shape, data in rows[0]]
    names = [[(tensor.name, tensor.datatype, tensor.shape) for tensor in row] for row in rows]
    if not rows or any(tensor != names[0] for tensor in names):
        return None
    tensors = []
    for parts in zip(*rows):
        first: Tensor = parts[0]
        data: Any = [element for tensor in parts for element in tensor.data]
        if first.datatype != "BYTES":
            data = b"".join(tensor.data for tensor in parts)
        tensors.append(Tensor(first.name, first.datatype, (len(rows), *first.shape), data))
    return tensors


def by_name(inputs: Dict[str, Tensor], arrays: bool, texts: bool = False) -> Dict[str, Any]:
    """Tensors as a script gets them: arrays of numpy, or lists in lists. With `texts`, BYTES that are text are str."""
    if texts:
        inputs = {name: _with_texts(tensor) for name, tensor in inputs.items()}
    return {name: tensor.array() if arrays else nested_value(tensor) for name, tensor in inputs.items()}


def _with_texts(tensor: Tensor) -> Tensor:
    try:
        return tensor._replace(data=tensor.flat()) if tensor.datatype == "BYTES" else tensor
    except UnicodeDecodeError:
        return tensor


def nested_value(tensor: Tensor) -> Any:
    """A tensor as lists in lists; elements of BYTES that are no text stay bytes."""
    try:
        return tensor.nested()
    except (UnicodeDecodeError, TypeError):
        return nested_elements(tensor.data, tensor.shape)
