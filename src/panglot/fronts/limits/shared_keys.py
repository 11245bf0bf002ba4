"""The limits of keys over all fronts: buckets and open requests lie in memory that all fronts map.

No lock guards it: a front that is killed would hold the lock for good. So a limit may be exceeded by one request for
each other front: two fronts that admit requests of one key in the same moment may each see the last free place.
"""

from __future__ import annotations

import hashlib
import mmap
import time
from functools import partial

from panglot.web.access.key_file import Key
from panglot.web.access.keys import KeyHolder, Keys, policy_of

SLOTS = 1 << 16
"""Names of keys that a server can have in its life. Each front limits later keys by itself."""
NAME, TOKENS, FILLED, OPEN = range(4)
"""The cells of a row: a digest of the key's name, its bucket, when the bucket was filled, open requests by front."""


class KeyRow:
    """The row of one key, as one front sees it."""

    __slots__ = ("front", "fronts", "integers", "numbers", "start")

    def __init__(self, memory: mmap.mmap, start: int, front: int, fronts: int) -> None:
        self.integers = memoryview(memory).cast("q")
        self.numbers = memoryview(memory).cast("d")
        self.start = start
        self.front = front
        self.fronts = fronts


class SharedKeys:
    """Made before the fronts are forked. Memory is taken for rows that are used."""

    def __init__(self, fronts: int) -> None:
        self.fronts = fronts
        self._width = OPEN + fronts
        self._memory = mmap.mmap(-1, 8 * self._width * SLOTS)
        self._integers = memoryview(self._memory).cast("q")

    def join(self, keys: Keys, front: int) -> None:
        """Share the limits of these keys, and of keys that the file gets later, with all fronts."""
        keys.record_by(partial(SharedKeyHolder, self, front))

    def row(self, key: Key, front: int) -> KeyRow:
        """The row of a key. All fronts, and their successors, find the same row for a name."""
        # Never 0, which marks a free row.
        digest = int.from_bytes(hashlib.blake2b(key.name.encode(), digest_size=7).digest()) + 1
        for slot in range(digest % SLOTS, digest % SLOTS + SLOTS):
            start = self._width * (slot % SLOTS)
            known = self._integers[start]
            if not known:
                row = KeyRow(self._memory, start, front, self.fronts)
                # The bucket first: a front that finds the name takes the bucket as it is.
                row.numbers[start + TOKENS], row.numbers[start + FILLED] = float(key.burst), time.monotonic()
                self._integers[start] = digest
                return row
            if known == digest:
                return KeyRow(self._memory, start, front, self.fronts)
        row = KeyRow(mmap.mmap(-1, 8 * self._width), 0, front, self.fronts)
        row.numbers[TOKENS], row.numbers[FILLED] = float(key.burst), time.monotonic()
        return row

    def clear(self, front: int) -> None:
        """Count out the open requests of a front that has died."""
        for start in range(0, self._width * SLOTS, self._width):
            if self._integers[start]:
                self._integers[start + OPEN + front] = 0


class SharedKeyHolder(KeyHolder):
    """A client of all fronts. Each front counts the outcomes of its requests; pages and metrics add the counts."""

    __slots__ = ("_row",)

    def __init__(self, shared: SharedKeys, front: int, key: Key) -> None:
        # Without the `__init__` of the base: a front that starts must not fill the bucket that other fronts use.
        self._row = shared.row(key, front)
        self.name = key.name
        self.key = key
        self.admitted = self.rate = self.at_once = self.forbidden = 0
        self.policy = policy_of(key)
        self._lines = {}

    @property
    def open(self) -> int:
        row, start = self._row, self._row.start + OPEN
        return sum(row.integers[start : start + row.fronts])

    @open.setter
    def open(self, value: int) -> None:
        raise AttributeError("each front counts its own: see take and release")

    @property
    def open_here(self) -> int:
        return self._row.integers[self._row.start + OPEN + self._row.front]

    @property
    def tokens(self) -> float:
        return self._row.numbers[self._row.start + TOKENS]

    @tokens.setter
    def tokens(self, value: float) -> None:
        self._row.numbers[self._row.start + TOKENS] = value

    @property
    def filled(self) -> float:
        return self._row.numbers[self._row.start + FILLED]

    @filled.setter
    def filled(self, value: float) -> None:
        self._row.numbers[self._row.start + FILLED] = value

    def readmit(self, key: Key | None, now: float) -> bytes | None:
        """Count a request in, as the base class does, with figures that all fronts share."""
        # Each step reads and writes at once. The base reads a number and writes it later: between the two, other fronts
        # may change it.
        if key is None or self.key is not key or self.open >= key.at_once or time.time() >= key.expires:
            return None
        self._refill(now)
        if key.burst and self.tokens < 1:
            return None
        self.take()
        return self.limit_lines()

    def take(self) -> None:
        self._row.integers[self._row.start + OPEN + self._row.front] += 1
        self.take_short()

    def release(self) -> None:
        self._row.integers[self._row.start + OPEN + self._row.front] -= 1
