"""Taking tokens out of the environment of this process, once they have been read."""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterable
from pathlib import Path

from panglot.settings.variables import SECRETS

STAT = Path("/proc/self/stat")
ENV_START = 47
"""The field of /proc/PID/stat, behind the program's name, telling where the environment begins; the next: its end."""
LARGEST = 64 << 20


def forget_tokens() -> None:
    """Remove all tokens from the environment: neither children nor readers of /proc/PID/environ may see them.

    The kernel shows there the variables that the process was started with. It reads them from the memory of the
    process, also when they have been unset since. So the text of the tokens is overwritten in this memory too. The
    memory itself is visible to processes of the same user, if the system lets them trace each other.
    """
    given = [name for name in SECRETS if os.environ.pop(name, None) is not None]
    if given:
        with contextlib.suppress(OSError, ValueError, IndexError):
            _overwrite(given)


def _overwrite(names: Iterable[str]) -> None:
    """Put stars over the values of variables in the memory that the process was started with."""
    fields = STAT.read_bytes().rpartition(b")")[2].split()
    start, end = int(fields[ENV_START]), int(fields[ENV_START + 1])
    if not 0 < start < end <= start + LARGEST:
        return
    block = b"\0" + ctypes.string_at(start, end - start)
    for name in names:
        text = b"\0" + os.fsencode(name) + b"="
        offset = block.find(text)
        if offset >= 0:
            # `block` has one byte more at its beginning than the memory.
            value = offset + len(text)
            ctypes.memset(start + value - 1, ord("*"), block.index(b"\0", value) - value)
