"""Noticing that calls in this process cannot succeed any more: its device stays broken, or all fail in the same way.

A fault on a CUDA device stays with its process: every later call fails too, and only a new process works again. The
state comes from the driver, not from the text of an exception, so the framework does not matter.
"""

from __future__ import annotations

import ctypes
import os
from typing import Any, Optional, Type

from panglot_worker.line import wire
from panglot_worker.line.port import Port

STICKY = (
    ("torch", "AcceleratorError"),
    ("cupy_backends.cuda.api.runtime", "CUDARuntimeError"),
    ("numba.cuda.cudadrv.driver", "CudaAPIError"),
    ("pycuda._driver", "LaunchError"),
)
"""Exceptions of frameworks for faults of a device. One alone may pass; after two in a row the fault stays."""


class Sickness:
    """Counts the failures of this process. The caller sets `alike` back to 0 when a call succeeds."""

    def __init__(self, port: Port, most: int) -> None:
        self.port = port
        self.most = most
        self.alike = 0
        """Failures of one kind in a row."""
        self.certain = False
        """Whether nothing can succeed here any more."""
        self._kind: Optional[Type[BaseException]] = None

    def noted(self, error: BaseException) -> str:
        """Note that a call failed. Returns why this process can do no more, or nothing while that is not certain."""
        kind = type(error)
        # Types are compared, never messages: these hold addresses and sizes that differ each time.
        self.alike = self.alike + 1 if kind is self._kind else 1
        self._kind = kind
        fault = device_fault() or (kind.__name__ if self.alike >= 2 and is_sticky(kind) else "")
        if fault:
            self.certain = True
            message = "its device stays broken (%s)" % fault
            self._tell(message)
            return message
        if self.most and self.alike >= self.most:
            self._tell("%d calls in a row have raised %s and none has succeeded" % (self.alike, kind.__name__))
            self.alike = 0
        return ""

    def _tell(self, message: str) -> None:
        self.port.tell(wire.EVENT, {"type": "sick", "message": message, "certain": self.certain})


def is_sticky(kind: Type[BaseException]) -> bool:
    return any((base.__module__, base.__name__) in STICKY for base in kind.__mro__)


def device_fault() -> str:
    """The fault of a CUDA device this process uses; empty when all are well, or none is used."""
    try:
        # RTLD_NOLOAD: only a library that this process has loaded already. A script without CUDA must not pay for it.
        cuda = ctypes.CDLL("libcuda.so.1", mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    except OSError:
        return ""
    count = ctypes.c_int()
    if cuda.cuDeviceGetCount(ctypes.byref(count)):
        return ""
    return next(filter(None, (_fault(cuda, device) for device in range(count.value))), "")


def _fault(cuda: Any, device: int) -> str:
    """The error that the driver returns when asked to finish all work of a device; empty where there is none.

    It is asked in the primary context of the device, which the frameworks share.
    """
    flags, active, context = ctypes.c_uint(), ctypes.c_int(), ctypes.c_void_p()
    state = cuda.cuDevicePrimaryCtxGetState(device, ctypes.byref(flags), ctypes.byref(active))
    # A primary context that is not active must not be retained: that would create it, with its memory.
    if state or not active.value:
        return ""
    code = cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
    if not code:
        code = cuda.cuCtxPushCurrent_v2(context) or cuda.cuCtxSynchronize()
        # The script's own context must be current again, and the context retained above be released.
        cuda.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))
        cuda.cuDevicePrimaryCtxRelease_v2(device)
    if not code:
        return ""
    name = ctypes.c_char_p()
    cuda.cuGetErrorName(code, ctypes.byref(name))
    return (name.value or b"error %d" % code).decode()
