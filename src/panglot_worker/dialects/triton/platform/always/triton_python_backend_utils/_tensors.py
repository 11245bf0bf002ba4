"""Tensors, and the names and numbers of their types."""

import struct

import numpy as np

from triton_python_backend_utils._errors import TritonModelException

DLPACK_CPU = 1
ON_GPU = "tensors on a GPU are not taken here: move them to the CPU first, as tensor.cpu() does"

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
    "TYPE_BF16": np.float32,
    "TYPE_FP32": np.float32,
    "TYPE_FP64": np.float64,
    "TYPE_STRING": np.object_,
}


class Tensor:
    """A name and an array of numpy."""

    def __init__(self, name, array):
        if not isinstance(array, np.ndarray):
            raise TritonModelException("Tensor(%r, ...) takes an array of numpy, not %s" % (name, type(array).__name__))
        self._name = str(name)
        self._array = array

    def name(self):
        return self._name

    def as_numpy(self):
        return self._array

    def shape(self):
        return list(self._array.shape)

    def triton_dtype(self):
        return numpy_to_triton_type(self._array.dtype)

    def is_cpu(self):
        return True

    def to_dlpack(self):
        return self._array.__dlpack__()

    def __dlpack__(self, **options):
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()

    @staticmethod
    def from_dlpack(name, tensor):
        """Take the memory of another framework's tensor, which must be on the CPU."""
        device = getattr(tensor, "__dlpack_device__", None)
        if device is None:
            raise TritonModelException("from_dlpack takes a tensor, not a capsule: give it the tensor itself")
        if device()[0] != DLPACK_CPU:
            raise TritonModelException(ON_GPU)
        return Tensor(name, np.from_dlpack(tensor))


def triton_string_to_numpy(name):
    return TRITON_STRING_TO_NUMPY[name]


def numpy_to_triton_type(data_type):
    """The number Triton has for a type of numpy."""
    order = ["TYPE_BOOL", "TYPE_UINT8", "TYPE_UINT16", "TYPE_UINT32", "TYPE_UINT64", "TYPE_INT8", "TYPE_INT16",
             "TYPE_INT32", "TYPE_INT64", "TYPE_FP16", "TYPE_FP32", "TYPE_FP64", "TYPE_STRING"]  # fmt: skip
    wanted = np.dtype(data_type)
    if wanted.kind in "OSU":
        return len(order)
    return next(at for at, name in enumerate(order, 1) if np.dtype(TRITON_STRING_TO_NUMPY[name]) == wanted)


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
