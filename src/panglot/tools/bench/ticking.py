"""A timer that is exact to some tens of microseconds. The timers of event loops are exact to milliseconds."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import time
from collections.abc import Callable

CLOCK_MONOTONIC = 1
TFD_TIMER_ABSTIME = 1
FLAGS = os.O_NONBLOCK | os.O_CLOEXEC


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class _Timer(ctypes.Structure):
    _fields_ = (("interval", _Timespec), ("value", _Timespec))


class Ticker:
    """Calls back at the moments set by `at`, on the clock of `time.monotonic`: a timer of Linux, read by the loop."""

    def __init__(self, call: Callable[[Ticker], None]) -> None:
        self._call = call
        self._loop = asyncio.get_running_loop()
        self._later: asyncio.TimerHandle | None = None
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._fd = -1
        with contextlib.suppress(AttributeError):
            self._fd = self._libc.timerfd_create(CLOCK_MONOTONIC, FLAGS)
        if self._fd >= 0:
            self._loop.add_reader(self._fd, self._ready)

    def at(self, moment: float) -> None:
        """Set the next moment, replacing the one before."""
        if self._fd < 0:
            self._later = self._loop.call_later(max(0.0, moment - time.monotonic()), self._call, self)
            return
        seconds = int(moment)
        # A timer of Linux that is set to zero never rings.
        value = _Timespec(seconds, max(1, int((moment - seconds) * 1e9)))
        timer = _Timer(_Timespec(0, 0), value)
        self._libc.timerfd_settime(self._fd, TFD_TIMER_ABSTIME, ctypes.byref(timer), None)

    def _ready(self) -> None:
        # The loop may call this once more after `at` has set the timer again: then there is nothing to read.
        with contextlib.suppress(BlockingIOError):
            os.read(self._fd, 8)
            self._call(self)

    def close(self) -> None:
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1
        if self._later is not None:
            self._later.cancel()
