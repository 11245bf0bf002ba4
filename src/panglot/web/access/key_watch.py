"""Noticing that the file of keys has changed, while the server runs."""

from __future__ import annotations

import asyncio
import logging
import os

from panglot.errors import StartError, near
from panglot.terminal.text import counted
from panglot.web.access import key_file
from panglot.web.access.keys import Keys

EVERY = 1.0
"""Seconds between two looks. A look is a `stat`, which also sees the links that Kubernetes swaps."""
SETTLED = 0.2
"""Seconds that the file must not change before it is read: many editors empty a file, and then write it."""
log = logging.getLogger("panglot.access")

Stamp = tuple[int, int, int, int] | None


class KeyWatch:
    """Has the keys of a file be in force. A file that cannot be used changes nothing, and the log says so."""

    def __init__(self, file: str, keys: Keys, level: int = logging.INFO) -> None:
        """Watch a file; `level` is that of the lines about changes, of which one front of several tells."""
        self.file = file
        self.keys = keys
        self.level = level

    async def run(self) -> None:
        """Look until cancelled."""
        # The file may have changed between its first reading, at the start, and now: so it is read once more.
        known: Stamp = None
        while True:
            # On a thread: the file may be on a disk that hangs, and ten thousand keys take a while to read.
            stamp = await asyncio.to_thread(_stamp, self.file)
            if stamp != known:
                await asyncio.sleep(SETTLED)
                if stamp == await asyncio.to_thread(_stamp, self.file):
                    known = stamp
                    await self._read()
            await asyncio.sleep(EVERY)

    async def _read(self) -> None:
        try:
            keys = await asyncio.to_thread(key_file.read, self.file)
        except StartError as error:
            level = logging.ERROR if self.level >= logging.INFO else self.level
            log.log(level, "%s; the keys of before stay in force", error.sentence())
            return
        changes = self.keys.replace(keys)
        if changes.added or changes.changed or changes.removed:
            in_force = counted(changes[0], "key")
            message = "%s: %s in force; %d added, %d changed, %d removed"
            log.log(self.level, message, near(self.file), in_force, *changes[1:])


def _stamp(file: str) -> Stamp:
    try:
        status = os.stat(file)
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
