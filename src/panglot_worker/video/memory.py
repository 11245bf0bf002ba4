"""The memory in which frames cross from a decoder to its worker: a page of marks, then slots of one size.

A slot's mark says whose it is. The decoder takes a free one, fills it and tells the worker; the worker clears the mark
when nothing refers to the frame any more. The file is sparse: a slot costs as much as the largest frame put in it.
"""

from __future__ import annotations

import mmap

SLOTS = 8
HEADER = 4096
FREE, TAKEN = 0, 1


def slot_size(pixels: int) -> int:
    return -(-pixels * 3 // mmap.PAGESIZE) * mmap.PAGESIZE


def start_of(slot: int, size: int) -> int:
    return HEADER + slot * size


def length(size: int) -> int:
    return HEADER + SLOTS * size
