"""numpy.ndarray: in JSON lists of numbers inside of lists, in a form also a file as `numpy.save` writes it.

`Annotated[np.ndarray, np.float32, (None, 3)]` says the type of its elements and its shape; `NDArray[np.float32]` of
numpy.typing the type alone. A dimension that is None or -1 may have any length.
"""

from __future__ import annotations

import io
import re
import sys
from typing import Any, Callable, Dict, Iterable, Optional, Tuple

from panglot_worker.bodies.codec import File
from panglot_worker.hints.kind import Kind, Schema, json_value
from panglot_worker.hints.misfit import Misfit, must_be

ARRAY = "an array of numbers, as lists"
NPY = b"\x93NUMPY"
NAMES = re.compile(r"u?int(8|16|32|64)|float(16|32|64)|bool", re.ASCII)
DEEPEST = 32
"""Dimensions that numpy has at most, in all its versions."""
Dimensions = Optional[Tuple[Optional[int], ...]]


def of_array(hint: Any, arguments: Tuple[Any, ...], metadata: Iterable[Any]) -> Optional[Kind]:
    """The kind of numpy.ndarray, with what Annotated adds; None when that is not the hint."""
    numpy: Any = sys.modules.get("numpy")
    if numpy is None or hint is not numpy.ndarray:
        return None
    dtype, shape = _wanted(numpy, arguments, metadata)
    expects = _words(dtype, shape)

    def convert(value: Any) -> Any:
        if isinstance(value, numpy.ndarray):
            return _fitted(numpy, value, dtype, shape, expects)
        if isinstance(value, File):
            return _fitted(numpy, _from_npy(numpy, value.bytes), dtype, shape, expects)
        if not isinstance(value, (list, tuple, int, float)):
            raise must_be(expects, value)
        return _fitted(numpy, _from_lists(numpy, value), dtype, shape, expects)

    def parse(value: Any) -> Any:
        if isinstance(value, File) and not value.type.endswith("json"):
            return convert(value)
        return convert(json_value(value, expects))

    schema = _schema(numpy, dtype, shape)
    return Kind(expects, convert, parse, schema, _example(dtype, shape), is_file=True, is_array=True)


def _wanted(numpy: Any, arguments: Tuple[Any, ...], metadata: Iterable[Any]) -> Tuple[Any, Dimensions]:
    """Type of the elements, and shape: by the arguments of `NDArray[...]` and what Annotated adds. Raises TypeError."""
    dtype: Any = None
    shape: Dimensions = None
    elements = getattr(arguments[1], "__args__", ()) if len(arguments) == 2 else ()
    for said in (*elements, *metadata):
        if isinstance(said, tuple):
            shape = _dimensions(said)
        elif _is_type_of_elements(numpy, said):
            dtype = numpy.dtype(said)
    if dtype is not None and dtype.kind not in "biuf":
        raise TypeError("arrays of requests hold numbers or booleans, not %s" % dtype)
    return dtype, shape


def _is_type_of_elements(numpy: Any, said: Any) -> bool:
    if isinstance(said, str):
        return NAMES.fullmatch(said) is not None
    return isinstance(said, numpy.dtype) or (
        isinstance(said, type) and (issubclass(said, numpy.generic) or said in (int, float, bool))
    )


def _dimensions(said: Tuple[Any, ...]) -> Dimensions:
    if not all(length is None or (type(length) is int and length >= -1) for length in said):
        raise TypeError("a shape has lengths, or None for any length, not %r" % (said,))
    return tuple(None if length == -1 else length for length in said)


def _words(dtype: Any, shape: Dimensions) -> str:
    words = ARRAY if dtype is None else "an array of %s, as lists" % dtype
    return words if shape is None else "%s, of shape %s" % (words, _shape_words(shape))


def _shape_words(shape: Iterable[Optional[int]]) -> str:
    return "(%s)" % ", ".join("any" if length is None else str(length) for length in shape)


def _from_lists(numpy: Any, value: Any) -> Any:
    """The array of lists inside of lists. Raises Misfit where these are no numbers, or not of one length."""
    try:
        array = numpy.array(value)
    except (ValueError, OverflowError, TypeError):
        raise Misfit("must be an array: lists of equal lengths, that hold numbers") from None
    if array.dtype.kind not in "biuf":
        raise Misfit("must be an array: lists of equal lengths, that hold numbers")
    return array


def _from_npy(numpy: Any, data: bytes) -> Any:
    """The array in a file of `numpy.save`. Raises Misfit where its header claims more or fewer bytes than there are."""
    if data[:6] != NPY:
        raise Misfit("must be a file as numpy.save writes it (.npy)")
    stream = io.BytesIO(data)
    formats = numpy.lib.format
    try:
        version = formats.read_magic(stream)
        read = formats.read_array_header_1_0 if version == (1, 0) else formats.read_array_header_2_0
        shape, is_fortran, dtype = read(stream)
        if dtype.hasobject or dtype.kind not in "biuf":
            raise Misfit("must be a .npy file of numbers, not of %s" % dtype)
        rest = memoryview(data)[stream.tell() :]
        size = dtype.itemsize
        for length in shape:
            size *= length
        if size != len(rest) or len(shape) > DEEPEST:
            raise Misfit("is a .npy file whose header says %d bytes of data; there are %d" % (size, len(rest)))
        return numpy.frombuffer(rest, dtype).reshape(shape, order="F" if is_fortran else "C").copy()
    except Misfit:
        raise
    except Exception:
        # A header is an expression of Python, which fails in many ways.
        raise Misfit("is a broken .npy file") from None


def _fitted(numpy: Any, array: Any, dtype: Any, shape: Dimensions, expects: str) -> Any:
    """The array with elements of the wanted type. Raises Misfit where a number would change."""
    if shape is not None and not _has_shape(array.shape, shape):
        raise Misfit("must be %s; its shape is %s" % (expects, _shape_words(array.shape)))
    if array.dtype.kind == "f" and not numpy.isfinite(array).all():
        raise Misfit("must be %s; it holds NaN or infinity" % expects)
    if dtype is None or array.dtype == dtype:
        return array
    if array.size and ((array.dtype.kind == "b") != (dtype.kind == "b")):
        raise Misfit("must be %s; it holds %s" % (expects, array.dtype))
    with numpy.errstate(all="ignore"):
        cast = array.astype(dtype)
    if array.size and not _fits(numpy, array, cast):
        raise Misfit("must be %s; it holds a number that does not fit" % expects)
    return cast


def _fits(numpy: Any, array: Any, cast: Any) -> bool:
    """Whether the elements are the same numbers in another type; as floats they may lose digits."""
    if cast.dtype.kind not in "iu":
        return bool(numpy.isfinite(cast).all())
    bounds = numpy.iinfo(cast.dtype)
    return bool(bounds.min <= array.min().item() and array.max().item() <= bounds.max and (cast == array).all())


def _has_shape(actual: Tuple[int, ...], wanted: Tuple[Optional[int], ...]) -> bool:
    return len(actual) == len(wanted) and all(want is None or want == has for has, want in zip(actual, wanted))


def _schema(numpy: Any, dtype: Any, shape: Dimensions) -> Schema:
    """Lists inside of lists, down to numbers; any lists where the shape is not known."""
    kind = "f" if dtype is None else dtype.kind
    item: Schema = {"type": {"b": "boolean", "i": "integer", "u": "integer"}.get(kind, "number")}
    if kind in "iu" and dtype.itemsize < 8:
        bounds = numpy.iinfo(dtype)
        item.update(minimum=int(bounds.min), maximum=int(bounds.max))
    if shape is None:
        return {"type": "array", "items": {}}
    for length in reversed(shape):
        item = {"type": "array", "items": item}
        if length is not None:
            item.update(minItems=length, maxItems=length)
    return item


def _example(dtype: Any, shape: Dimensions) -> Any:
    makers: Dict[str, Callable[[], Any]] = {"b": lambda: True, "i": lambda: 1, "u": lambda: 1}
    example = makers.get("f" if dtype is None else dtype.kind, lambda: 0.5)()
    lengths = (2,) if shape is None else tuple(1 if length is None else min(length, 4) for length in shape)
    for length in reversed(lengths):
        example = [example] * length
    return example
