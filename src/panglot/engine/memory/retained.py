"""Memory that outlives a worker: its successor finds what the worker wrote. The front never reads it."""

from __future__ import annotations

import os


class RetainedMemory:
    """One file of memory for each index of a pool's workers, made when the first worker there is started."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._files: dict[int, int] = {}

    def file(self, index: int) -> int:
        """The open file of an index; -1 where the package wants none."""
        if not self.size:
            return -1
        if index not in self._files:
            file = os.memfd_create("panglot-retained", os.MFD_CLOEXEC)
            # It takes no memory until something is written.
            os.ftruncate(file, self.size)
            self._files[index] = file
        return self._files[index]

    def close(self) -> None:
        while self._files:
            os.close(self._files.popitem()[1])
