"""Tensors, and the names and numbers of their types."""

import functools
import struct

import numpy as np

try:
    from ml_dtypes import bfloat16
except ImportError:
    # Numbers of 32 bits then have the values.
    bfloat16 = np.float32

from triton_python_backend_utils import _dlpack
from triton_python_backend_utils._errors import TritonModelException, incompatible

ON_GPU = "tensors on a GPU are not taken here: move them to the CPU first, as tensor.cpu() does"
NO_DLPACK = (
    "Provided tensor is not supported. Tensor must be a DLPack capsule or have `__dlpack__` and `__dlpack_device__` "
    "attributes"
)
NOT_CONTIGUOUS = (
    "DLPack tensor is not contiguous. Only contiguous DLPack tensors that are stored in C-Order are supported."
)

TRITON_STRING_TO_NUMPY = {
    "TYPE_BOOL": bool,
    "TYPE_UINT8": np.uint8,
    "TYPE_UINT16": np.uint16,
    "TYPE_UINT32": np.uint32,
    "TYPE_UINT64": np.uint64,
    "TYPE_INT8": np.int8,
    "TYPE_INT16": np.int16,
    "TYPE_INT32": np.int32,
    "TYPE_INT64": np.int64,
    "TYPE_FP16": np.float16,
    "TYPE_BF16": bfloat16,
    "TYPE_FP32": np.float32,
    "TYPE_FP64": np.float64,
    "TYPE_STRING": np.object_,
}
NUMBERS = ("TYPE_BOOL", "TYPE_UINT8", "TYPE_UINT16", "TYPE_UINT32", "TYPE_UINT64", "TYPE_INT8", "TYPE_INT16",
           "TYPE_INT32", "TYPE_INT64", "TYPE_FP16", "TYPE_FP32", "TYPE_FP64", "TYPE_STRING")  # fmt: skip
"""The types in Triton's order: the first is number 1."""
BF16 = 14


class Tensor:
    """A name and an array of numpy. Elements of BF16 are of ml_dtypes' type, or numbers of 32 bits with that value."""

    def __init__(self, name, array):
        if not isinstance(name, str) or not isinstance(array, np.ndarray):
            raise incompatible("Tensor(name: str, array: numpy.ndarray)", name, array)
        if not name:
            raise TritonModelException("Tensor name cannot be an empty string.")
        number = _number_of(array.dtype)
        if number is None:
            raise TritonModelException("NumPy dtype is not supported.")
        self._name = name
        self._array = array
        self._is_bf16 = number == BF16

    def name(self):
        return self._name

    def as_numpy(self):
        return self._array

    def shape(self):
        return list(self._array.shape)

    def triton_dtype(self):
        return BF16 if self._is_bf16 else numpy_to_triton_type(self._array.dtype)

    def is_cpu(self):
        return True

    def to_dlpack(self):
        return self.__dlpack__()

    def __dlpack__(self, **options):
        if self._array.dtype.kind in "OSU":
            raise TritonModelException("DLPack does not have support for string tensors.")
        array = bf16_bits(self._array) if self._is_bf16 else self._array
        # Arrays that cannot be written to have no capsule.
        capsule = (array if array.flags.writeable else array.copy()).__dlpack__()
        if not self._is_bf16:
            return capsule
        # numpy has no such type: the capsule is one of whole numbers of the same width, and is renamed.
        _dlpack.tensor_of(capsule).dtype.code = _dlpack.BFLOAT
        return capsule

    def __dlpack_device__(self):
        return (_dlpack.CPU, 0)

    @staticmethod
    def from_dlpack(name, tensor):
        """Take the memory of another framework's tensor, or of its capsule, which must be on the CPU."""
        if not _dlpack.is_capsule(tensor):
            if not hasattr(tensor, "__dlpack__") or not hasattr(tensor, "__dlpack_device__"):
                raise TritonModelException(NO_DLPACK)
            if tensor.__dlpack_device__()[0] != _dlpack.CPU:
                raise TritonModelException(ON_GPU)
            tensor = tensor.__dlpack__()
        try:
            about = _dlpack.tensor_of(tensor)
        except ValueError:
            raise TritonModelException(NO_DLPACK) from None
        if about.device_type != _dlpack.CPU:
            raise TritonModelException(ON_GPU)
        is_bf16 = (about.dtype.code, about.dtype.bits) == (_dlpack.BFLOAT, 16)
        if is_bf16:
            about.dtype.code = _dlpack.UINT
        array = np.from_dlpack(_dlpack.Held(tensor))
        if not array.flags.c_contiguous:
            raise TritonModelException(NOT_CONTIGUOUS)
        return bf16_tensor(name, array) if is_bf16 else Tensor(name, array)


def bf16_tensor(name, bits):
    """A tensor of BF16, given as whole numbers of 16 bits."""
    if bfloat16 is not np.float32:
        return Tensor(name, bits.view(bfloat16))
    tensor = Tensor(name, (bits.astype(np.uint32) << 16).view(np.float32))
    tensor._is_bf16 = True
    return tensor


def bf16_bits(array):
    """The elements of an array as BF16: whole numbers of 16 bits, rounded to the nearest, ties to even."""
    if array.dtype.name == "bfloat16":
        return np.ascontiguousarray(array).view(np.uint16)
    wide = np.ascontiguousarray(array, np.float32)
    bits = wide.view(np.uint32).astype(np.uint64)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(wide), np.uint16(0x7FC0), rounded)


def triton_string_to_numpy(name):
    return TRITON_STRING_TO_NUMPY[name]


def triton_to_numpy_type(number):
    """The type of numpy for a number of Triton; None where there is none."""
    return TRITON_STRING_TO_NUMPY[NUMBERS[number - 1]] if 1 <= number <= len(NUMBERS) else None


def numpy_to_triton_type(data_type):
    """The number Triton has for a type of numpy; None where it has none."""
    return _number_of(np.dtype(data_type))


@functools.lru_cache(maxsize=256)
def _number_of(wanted):
    # Every tensor of every request asks this, and numpy takes long to name a type.
    if wanted.kind in "OSU":
        return len(NUMBERS)
    if wanted.name == "bfloat16":
        return BF16
    return next((at for at, name in enumerate(NUMBERS, 1) if np.dtype(TRITON_STRING_TO_NUMPY[name]) == wanted), None)


def serialize_byte_tensor(array):
    """Elements of bytes as they travel: a length of four bytes before each."""
    if array.size == 0:
        return np.empty([0], dtype=np.object_)
    parts = []
    for element in np.nditer(array, flags=["refs_ok"], order="C"):
        value = element.item()
        value = value if isinstance(value, bytes) else str(value).encode("utf-8")
        parts += [struct.pack("<I", len(value)), value]
    return np.array(b"".join(parts), dtype=object)


def deserialize_bytes_tensor(encoded):
    """The elements of what `serialize_byte_tensor` wrote."""
    elements, at, encoded = [], 0, bytes(encoded)
    while at < len(encoded):
        (size,) = struct.unpack_from("<I", encoded, at)
        elements.append(encoded[at + 4 : at + 4 + size])
        at += 4 + size
    decoded = np.empty(len(elements), object)
    decoded[:] = elements
    return decoded
