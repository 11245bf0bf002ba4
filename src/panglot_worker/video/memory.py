"""The memory in which frames cross from a decoder to its worker: a page of marks, then slots of one size.

A slot's mark tells its owner, and only the owner writes to the slot or its mark: the decoder while it is FREE, the
worker while it is TAKEN. The decoder fills a free slot, marks it taken and tells the worker, in this order. The worker
marks it free when nothing refers to the frame any more. No lock is needed, since neither process writes to slots of the
other. The file is sparse: a slot costs as much memory as the largest frame that was put in it.
"""

from __future__ import annotations

import mmap

SLOTS = 8
HEADER = 4096
FREE, TAKEN = 0, 1


def slot_size(pixels: int) -> int:
    """The bytes of a slot for frames of so many pixels, in whole pages."""
    return -(-pixels * 3 // mmap.PAGESIZE) * mmap.PAGESIZE


def start_of(slot: int, size: int) -> int:
    return HEADER + slot * size


def length(size: int) -> int:
    """The bytes of the whole file, with slots of this size."""
    return HEADER + SLOTS * size
