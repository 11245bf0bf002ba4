"""A worker's record of its streams for its successor: the request of each, and how far it has come.

It lies in memory that the front holds open and never reads, so it outlives a worker that dies at any moment. A page
with the next number of a stream comes first, then slots of one size, one for each stream.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
import threading
from typing import Any, Dict, List, NamedTuple, Optional

HEADER = 4096
SLOT = 16384
FREE, TAKEN = 0, 1
NEXT = struct.Struct("<q")
STATE = struct.Struct("<II")
"""Whether a slot is taken, and the length of the text of the stream's request."""
PROGRESS = struct.Struct("<18q2d")
ABOUT = 512
"""The start of this text in its slot."""


class Progress(NamedTuple):
    """How far a stream has come."""

    number: int
    """The stream's own."""
    first: int = 0
    """The first frame that has no answer yet, or will get none: a successor of a file goes on with it."""
    entered: int = 0
    """The number after the last frame that went into the graph."""
    underway: int = 0
    """Frames that are in the graph."""
    decoded: int = 0
    results: int = 0
    marks: int = 0
    taken: int = 0
    results_dropped: int = 0
    answered: int = 0
    unanswered: int = 0
    lost: int = 0
    dropped: int = 0
    reconnects: int = 0
    restarts: int = 0
    """How many workers it had before the one that plays it."""
    deaths: int = 0
    """How many of these workers died in a row without one analysed frame."""
    live: int = 0
    released: int = 0
    """Whether the worker that played it ended on purpose."""
    began: float = 0.0
    at: float = 0.0
    """When the stream began, and when this was written, by the monotonic clock that all processes here share."""


class Entry:
    """The slot of one stream. One thread at a time may write."""

    def __init__(self, memory: mmap.mmap, start: int, about: Dict[str, Any]) -> None:
        self._memory = memory
        self._start = start
        self.about = about
        """The request of the stream."""

    def write(self, progress: Progress) -> None:
        PROGRESS.pack_into(self._memory, self._start + STATE.size, *progress)

    def read(self) -> Progress:
        return Progress(*PROGRESS.unpack_from(self._memory, self._start + STATE.size))

    def free(self) -> None:
        STATE.pack_into(self._memory, self._start, FREE, 0)


class Ledger:
    """All slots of a memory file. It closes the file once it is mapped. Thread-safe."""

    def __init__(self, file: int) -> None:
        self._memory = mmap.mmap(file, os.fstat(file).st_size)
        # The mapping stays. Processes that the script starts must not inherit the file.
        os.close(file)
        self._lock = threading.Lock()

    def next_number(self) -> int:
        """A number that no stream was given by any worker."""
        with self._lock:
            (number,) = NEXT.unpack_from(self._memory)
            NEXT.pack_into(self._memory, 0, number + 1)
            return int(number)

    def claim(self, about: Dict[str, Any], progress: Progress) -> Optional[Entry]:
        """A slot for a stream; None when all are taken or the text is too long: then no successor knows it."""
        text = json.dumps(about).encode()
        with self._lock:
            for start in self._starts():
                if STATE.unpack_from(self._memory, start)[0] == FREE and len(text) <= SLOT - ABOUT:
                    entry = Entry(self._memory, start, about)
                    self._memory[start + ABOUT : start + ABOUT + len(text)] = text
                    entry.write(progress)
                    # Last: the process may die at any moment, and a slot that is taken must be whole.
                    STATE.pack_into(self._memory, start, TAKEN, len(text))
                    return entry
        return None

    def entries(self) -> List[Entry]:
        """The streams that a worker before this one played when it ended."""
        entries = []
        with self._lock:
            for start in self._starts():
                state, length = STATE.unpack_from(self._memory, start)
                if state == TAKEN:
                    text = self._memory[start + ABOUT : start + ABOUT + length]
                    entries.append(Entry(self._memory, start, json.loads(text)))
        return entries

    def _starts(self) -> range:
        return range(HEADER, len(self._memory) - SLOT + 1, SLOT)
