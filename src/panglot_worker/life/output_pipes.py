"""The pipes by which a worker reads the output of C libraries and other programs, for the process that starts it."""

from __future__ import annotations

import contextlib
import fcntl
import os
from typing import Dict, List, Tuple

VARIABLE = "_PANGLOT_OUTPUT_PIPES"
"""The variable by which a worker learns the numbers of its pipes: `environment` makes it, `numbers` reads it."""
F_SETPIPE_SZ = 1031
SIZE = 1 << 20
"""Bytes in a pipe: while a library prints and holds the interpreter, no thread of the worker can read."""
PIECE = 65536


class OutputPipes:
    """A pipe for standard output and one for standard error, or none where nothing is captured.

    The worker has both ends. The end for reading stays open here too: if the worker dies before it has read its last
    words, they are read here.
    """

    def __init__(self, wanted: bool) -> None:
        self._pipes: List[Tuple[int, int]] = [os.pipe() for _ in range(2)] if wanted else []
        for _, write in self._pipes:
            with contextlib.suppress(OSError):
                fcntl.fcntl(write, F_SETPIPE_SZ, SIZE)

    @property
    def files(self) -> Tuple[int, ...]:
        """The open files that the worker gets."""
        return tuple(end for pipe in self._pipes for end in pipe)

    @property
    def environment(self) -> Dict[str, str]:
        """The variable that tells the worker their numbers."""
        return {VARIABLE: ",".join(map(str, self.files))} if self._pipes else {}

    def given(self) -> None:
        """Close the ends for writing: only the worker may hold them."""
        for _, write in self._pipes:
            os.close(write)

    def last_words(self) -> bytes:
        """The output that the worker has not read, now that it is dead. Closes the pipes."""
        rest = b"".join(rest_of(read) for read, _ in self._pipes)
        self.close()
        return rest

    def close(self) -> None:
        """Close what is still open here."""
        pipes, self._pipes = self._pipes, []
        for read, _ in pipes:
            os.close(read)


def rest_of(read: int) -> bytes:
    """The content of a pipe, at most as much as it holds at once: a process may go on writing."""
    rest = b""
    # The worker may have left children that hold the other end: with them there is no end to wait for.
    os.set_blocking(read, False)
    with contextlib.suppress(BlockingIOError):
        while len(rest) < SIZE:
            piece = os.read(read, PIECE)
            if not piece:
                break
            rest += piece
    return rest


def numbers(text: str) -> List[Tuple[int, int]]:
    """The ends of the pipes, as `environment` wrote them: for each, where to read and where to write."""
    ends = [int(number) for number in text.split(",")] if text else []
    return list(zip(ends[::2], ends[1::2]))
