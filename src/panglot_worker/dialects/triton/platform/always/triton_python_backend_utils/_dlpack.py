"""Capsules of DLPack: whose memory they hold, and of which type its elements are."""

import ctypes

CPU = 1
UINT, BFLOAT = 1, 4
NAME = b"dltensor"


class DataType(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class DLTensor(ctypes.Structure):
    """The head of what a capsule points to, as dlpack.h has it."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("dtype", DataType),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    )


def is_capsule(value):
    return type(value).__name__ == "PyCapsule"


def tensor_of(capsule):
    """What a capsule that nobody has taken over describes. Raises ValueError for another kind of capsule."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return DLTensor.from_address(pointer(capsule, NAME))


class Held:
    """A capsule as numpy and other frameworks take tensors: an object that gives it."""

    def __init__(self, capsule):
        self._capsule = capsule
        about = tensor_of(capsule)
        self._device = (about.device_type, about.device_id)

    def __dlpack__(self, **options):
        return self._capsule

    def __dlpack_device__(self):
        return self._device
