"""Arrays of results: read from `.npy` files, written to them, and compared. The extra `arrays` brings numpy for it.

Of the front and the tools, only this module imports numpy. It alone imports pickle too, because `reprod_log` saves a
dictionary of arrays as one. `check` and `run --save` import this module when they are used; a server never does. A
pickle is a program that may call every function it names. Here its names lead to the few functions below and to nothing
else. So reading a file runs no code of it, and none of numpy that would trust it.
"""

from __future__ import annotations

import io
import pickle
import pickletools
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from panglot.errors import StartError

try:
    import numpy as np
except ModuleNotFoundError:
    raise StartError("comparing and saving arrays needs numpy", fix="pip install 'panglot[arrays]'") from None

Array = np.ndarray
MAGIC = b"\x93NUMPY"
ZIP = b"PK\x03\x04"
LONGEST = 60
PLAIN = "biufcSUVmM"
"""Kinds of numpy's types whose values are bytes alone, without references to objects."""


def read(path: Path) -> dict[str, Any]:
    """The arrays of a file by key; the key of a single array is empty. Raises StartError."""
    try:
        with path.open("rb") as file:
            return _read(file)
    except OSError as error:
        raise StartError(f"{path} cannot be read: {error.strerror or error}", fix="name a .npy file") from None
    except Refused as error:
        raise StartError(f"no .npy file of arrays: {error}", file=str(path)) from None
    except Exception as error:  # noqa: BLE001  see below
        # A damaged pickle or header makes its reader raise one of a dozen types.
        raise StartError(f"no .npy file of arrays: it is damaged ({type(error).__name__})", file=str(path)) from None


def _read(file: BinaryIO) -> dict[str, Any]:
    start = file.read(len(MAGIC) + 2)
    if start.startswith(ZIP):
        raise Refused("it is an .npz archive; save its arrays as .npy")
    if not start.startswith(MAGIC):
        raise Refused("it does not begin as one")
    version = (start[-2], start[-1])
    if version < (3, 0):
        form = np.lib.format
        head = form.read_array_header_1_0 if version == (1, 0) else form.read_array_header_2_0
        if head(file)[2].hasobject:
            return _dictionary(Unpickler(file).load())
    file.seek(0)
    return {"": np.load(file, allow_pickle=False)}


def _dictionary(value: Any) -> dict[str, Any]:
    array = finished(value)
    if not isinstance(array, dict):
        raise Refused(f"it holds a {type(array).__name__} of objects, not a dictionary of arrays")
    return {str(key): entry for key, entry in array.items()}


# Pickles


class Refused(ValueError):
    """The file has something besides plain values and arrays."""


class Dtype:
    """A type while it is read: its code, and the order of bytes, which comes later in the pickle."""

    def __init__(self, code: Any, *_: Any) -> None:
        self.code = code.decode("latin-1") if isinstance(code, bytes) else str(code)
        self.order: Any = "="

    def __setstate__(self, state: Any) -> None:
        self.order = str(state[1]).replace("|", "=")

    def numpy(self) -> Any:
        """The type for numpy. Raises Refused for types that are more than bytes, such as objects and records."""
        dtype = np.dtype(self.code)
        if dtype.kind not in PLAIN or dtype.names or dtype.subdtype:
            raise Refused(f"it holds an array of type {self.code}")
        return dtype.newbyteorder(self.order)


class Unfinished:
    """An array while it is read: a pickle first makes it, and then sets its contents, an array or a list of objects."""

    value: Any = None

    def __setstate__(self, state: Any) -> None:
        _, shape, dtype, fortran, data = state
        if isinstance(data, list):
            self.value = data[0] if shape == () else data
        else:
            self.value = _array(data, dtype, shape, "F" if fortran else "C")


def _array(data: Any, dtype: Dtype, shape: Any, order: str = "C") -> Any:
    # Python 2 wrote bytes as text.
    content = data.encode("latin-1") if isinstance(data, str) else data
    return np.frombuffer(content, dtype.numpy()).reshape(shape, order=order)


def _scalar(dtype: Dtype, data: Any) -> Any:
    return _array(data, dtype, ())


def _encoded(text: str, _: str = "") -> bytes:
    return text.encode("latin-1")


KNOWN = {
    "numpy.dtype": Dtype,
    "numpy.ndarray": Unfinished,
    "numpy.core.multiarray._reconstruct": lambda *_: Unfinished(),
    "numpy.core.multiarray.scalar": _scalar,
    "numpy.core.numeric._frombuffer": _array,
    "_codecs.encode": _encoded,
    "__builtin__.bytes": lambda *_: b"",
    "collections.OrderedDict": OrderedDict,
}


class Unpickler(pickle.Unpickler):
    """Builds Python's own containers, numbers and texts, and arrays."""

    def find_class(self, module: str, name: str) -> Any:
        """The function for a name. Raises Refused for every name that arrays do not need."""
        known = KNOWN.get(f"{module}.{name}".replace("numpy._core.", "numpy.core.", 1))
        if known is None:
            raise Refused(f"it would import {module}.{name}")
        return known


def finished(value: Any) -> Any:
    """The value with every array in its final form."""
    if isinstance(value, Unfinished):
        return finished(value.value)
    if isinstance(value, dict):
        return {key: finished(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [finished(entry) for entry in value]
    if isinstance(value, type | Dtype) or callable(value):
        raise Refused("it holds a type where a value should be")
    return value


def write(path: Path, arrays: Mapping[str, Any]) -> None:
    """Save a dictionary of arrays as `reprod_log` would. Raises StartError when the file cannot be written."""
    whole: Any = np.empty((), dtype=object)
    whole[()] = dict(arrays)
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": "|O", "fortran_order": False, "shape": ()})
    try:
        path.write_bytes(head.getvalue() + _portable(pickle.dumps(whole, protocol=3)))
    except OSError as error:
        raise StartError(f"{path} cannot be written: {error.strerror}", fix="name another file") from None


def _portable(pickled: bytes) -> bytes:
    """The pickle with numpy 1's names for its core. numpy 2 knows them too, and numpy 1 knows no others."""
    parts, at = [], 0
    for opcode, argument, position in pickletools.genops(pickled):
        if opcode.name == "GLOBAL" and str(argument).startswith("numpy._core."):
            parts += [pickled[at:position], b"cnumpy.core."]
            at = int(position or 0) + len(b"cnumpy._core.")
    return b"".join([*parts, pickled[at:]])


# Values


def of_bytes(dtype: str, shape: Any, data: bytes) -> Any:
    """An array as a worker sends it. Raises ValueError when the bytes do not fit."""
    return np.frombuffer(data, dtype).reshape(shape)


def of_value(value: Any) -> Any:
    """A JSON value as an array, without dimensions for a single number or text; None where it has no array's shape."""
    shape: list[int] = []
    flat = [value]
    while flat and all(isinstance(entry, list) for entry in flat):
        lengths = {len(entry) for entry in flat}
        if len(lengths) != 1:
            return None
        shape.append(lengths.pop())
        flat = [element for entry in flat for element in entry]
    kinds = {type(entry) for entry in flat}
    if not kinds <= {int, float} and kinds not in ({bool}, {str}):
        return None
    try:
        dtype = np.int64 if kinds == {int} else np.float64 if not kinds or float in kinds else None
        return np.array(flat, dtype).reshape(shape)
    except OverflowError:
        return None


def as_saved(value: Any) -> Any:
    """A value in the form for `reprod_log`: a single value is an array of one. None for a value that is no array."""
    array = value if isinstance(value, Array) else of_value(value)
    return array.reshape(1) if array is not None and array.ndim == 0 else array


def name(dtype: Any) -> str:
    """`float32` for any order of bytes, `text` for any length."""
    return {"U": "text", "S": "bytes", "V": "raw"}.get(dtype.kind, str(dtype.newbyteorder("=")))


def described(array: Any) -> str:
    return f"{name(array.dtype)}{list(array.shape)}"


# Differences


@dataclass(frozen=True)
class Difference:
    """Where two arrays of one shape differ. `count` is 0 when they agree; `gap` is then the largest allowed gap."""

    count: int = 0
    nans: int = 0
    """How many are NaN on one side only."""
    index: tuple[int, ...] = ()
    """The place of the largest gap, of the first NaN, or of the first element that is no number."""
    gap: float = 0.0
    allowed: float = 0.0


def is_number(array: Any) -> bool:
    return array.dtype.kind in "biufc"


def difference(left: Any, right: Any, atol: float, rtol: float) -> Difference:
    """Compare two arrays of one shape: numbers by `atol + rtol * |right|`, all others exactly."""
    shape, left, right = left.shape, left.ravel(), right.ravel()
    if not is_number(left) or not is_number(right):
        indices = np.flatnonzero(_unequal(left, right))
        return Difference(len(indices), index=_index(indices[0], shape)) if len(indices) else Difference()
    indices = np.flatnonzero(left != right)
    if not len(indices):
        return Difference()
    mine, theirs = left[indices], right[indices]
    no_number, neither = np.isnan(mine), np.isnan(theirs)
    gaps = np.where(no_number & neither, 0.0, _gaps(mine, theirs))
    alone = np.flatnonzero(no_number != neither)
    if len(alone):
        return Difference(len(alone), len(alone), _index(indices[alone[0]], shape))
    allowed = atol + rtol * np.where(np.isfinite(theirs), np.abs(theirs.astype(_wide(theirs))), 0.0)
    worst = gaps.argmax()
    outside = int((gaps > allowed).sum())
    return Difference(outside, 0, _index(indices[worst], shape), float(gaps[worst]), float(allowed[worst]))


def _gaps(left: Any, right: Any) -> Any:
    if left.dtype.kind in "biu" and right.dtype.kind in "biu":
        # Exact for all 64 bits: a difference that wraps around is right again when it is read as unsigned.
        wrapped = left.astype(np.int64) - right.astype(np.int64)
        return np.where(left > right, wrapped, -wrapped).view(np.uint64).astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        gaps = np.abs(left.astype(_wide(left)) - right.astype(_wide(right)))
    return np.where(np.isnan(gaps), np.inf, gaps)


def _wide(array: Any) -> Any:
    return np.promote_types(array.dtype, np.float64)


def _unequal(left: Any, right: Any) -> Any:
    if left.dtype.kind != right.dtype.kind:
        return np.ones(left.shape, bool)
    if left.dtype.kind not in "mMV":
        return left != right
    if left.dtype.itemsize != right.dtype.itemsize:
        return np.ones(left.shape, bool)
    raw = f"V{left.dtype.itemsize}"
    return left.view(raw) != right.view(raw)


def _index(index: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(number) for number in np.unravel_index(index, shape))


def shown(array: Any, index: tuple[int, ...]) -> str:
    """One element in words."""
    value = array[index]
    text = f"{value:.9g}" if array.dtype.kind in "iufc" else repr(value.item() if hasattr(value, "item") else value)
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."
