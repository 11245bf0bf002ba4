"""`.npy` files, read and written without numpy: one array, or a dictionary of them as `reprod_log` has it."""

from __future__ import annotations

import ast
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from panglot.errors import StartError
from panglot.tools.arrays import Array
from panglot.tools.unpickling import Reader, Refused

MAGIC = b"\x93NUMPY"
ALIGNMENT = 64


def read(path: Path) -> dict[str, Any]:
    """What a file holds, by key; the key of an array that stands alone is empty. Raises StartError."""
    try:
        return _read(path.read_bytes())
    except OSError as error:
        raise StartError(f"{path} cannot be read: {error.strerror}", fix="name a .npy file") from None
    except (ValueError, IndexError, SyntaxError, struct.error) as error:
        raise StartError(f"no .npy file of arrays: {error}", file=str(path)) from None


def _read(data: bytes) -> dict[str, Any]:
    if data[:4] == b"PK\x03\x04":
        raise ValueError("it is an .npz archive; save its arrays as .npy")
    if data[:6] != MAGIC:
        raise ValueError("it does not begin as one")
    form = "<H" if data[6] == 1 else "<I"
    start = 8 + struct.calcsize(form)
    length = struct.unpack_from(form, data, 8)[0]
    head = ast.literal_eval(data[start : start + length].decode("latin-1" if data[6] < 3 else "utf-8"))
    content = data[start + length :]
    if not isinstance(head, dict) or not {"descr", "shape", "fortran_order"} <= head.keys():
        raise ValueError("its head does not describe an array")
    if "O" not in str(head["descr"]):
        descr = head["descr"] if isinstance(head["descr"], str) else "|V"
        array = Array(descr, tuple(head["shape"]), content, bool(head["fortran_order"]))
        array.values()
        return {"": array}
    value = Reader().read(content)
    if not isinstance(value, dict):
        raise Refused(f"it holds a {type(value).__name__} of objects, not a dictionary of arrays")
    return {str(key): entry for key, entry in value.items()}


def write(path: Path, arrays: Mapping[str, Array]) -> None:
    """Save a dictionary of arrays as `numpy.save` would. Raises StartError when the file cannot be written."""
    try:
        path.write_bytes(_head("|O", ()) + _pickled(arrays))
    except OSError as error:
        raise StartError(f"{path} cannot be written: {error.strerror}", fix="name another file") from None


def _head(descr: str, shape: tuple[int, ...]) -> bytes:
    text = f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {shape!r}, }}".encode()
    room = len(MAGIC) + 4 + len(text) + 1
    text += b" " * (-room % ALIGNMENT) + b"\n"
    return MAGIC + b"\x01\x00" + struct.pack("<H", len(text)) + text


# A pickle of protocol 3, put together by hand: what numpy writes for an array of one object, a dictionary.


def _pickled(arrays: Mapping[str, Array]) -> bytes:
    entries = b"".join(
        _text(name) + _array(array.dtype, array.shape, _bytes(array.data)) for name, array in arrays.items()
    )
    one_object = b"]}(" + entries + b"ua"
    return b"\x80\x03" + _reconstructed() + b"(K\x01)" + _dtype("|O8") + b"\x89" + one_object + b"tb."


def _reconstructed() -> bytes:
    return b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85C\x01b\x87R"


def _array(dtype: str, shape: tuple[int, ...], content: bytes) -> bytes:
    lengths = b"".join(b"\x8a\x08" + struct.pack("<q", length) for length in shape)
    return _reconstructed() + b"(K\x01(" + lengths + b"t" + _dtype(dtype) + b"\x89" + content + b"tb"


def _dtype(dtype: str) -> bytes:
    order, code = dtype[0], dtype[1:]
    width, alignment = (int(code[1:]) * 4, 4) if code[0] == "U" else (-1, -1)
    flags = {"O": b"K\x3f", "U": b"K\x08"}.get(code[0], b"K\x00")
    made = b"cnumpy\ndtype\n" + _text(code) + b"\x89\x88\x87R"
    state = b"(K\x03" + _text(order) + b"NNN" + _int(width) + _int(alignment) + flags + b"tb"
    return made + state


def _int(value: int) -> bytes:
    return b"J" + struct.pack("<i", value)


def _text(value: str) -> bytes:
    encoded = value.encode("utf-8", "surrogatepass")
    return b"X" + struct.pack("<I", len(encoded)) + encoded


def _bytes(value: bytes) -> bytes:
    if len(value) < 1 << 32:
        return b"B" + struct.pack("<I", len(value)) + value
    raise StartError("an array larger than 4 GiB cannot be saved")
