"""The memory in which frames cross from a decoder to its worker: a page of marks, then berths of one size.

A berth's mark says whose it is, and only its owner writes to the berth or its mark: the decoder while it is FREE, the
worker while it is TAKEN. The decoder fills a free berth, marks it taken and tells the worker, in this order; the worker
marks it free when nothing refers to the frame any more. No lock is needed, since neither writes what the other owns.
The file is sparse: a berth costs as much as the largest frame put in it.
"""

from __future__ import annotations

import mmap

BERTHS = 8
HEADER = 4096
FREE, TAKEN = 0, 1


def berth_size(pixels: int) -> int:
    """The bytes of a berth for frames of so many pixels, in whole pages."""
    return -(-pixels * 3 // mmap.PAGESIZE) * mmap.PAGESIZE


def start_of(berth: int, size: int) -> int:
    return HEADER + berth * size


def length(size: int) -> int:
    """The bytes of the whole file, with berths of this size."""
    return HEADER + BERTHS * size
