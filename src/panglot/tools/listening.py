"""Who listens on a port of this machine."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

PROC = Path("/proc")
LISTENS = "0A"


def listener(port: int, proc: Path = PROC) -> int | None:
    """The process that listens on a port, as far as this user may know."""
    inodes = set()
    for table in ("net/tcp", "net/tcp6"):
        with contextlib.suppress(OSError):
            for line in (proc / table).read_text().splitlines()[1:]:
                words = line.split()
                if words[3] == LISTENS and int(words[1].rpartition(":")[2], 16) == port:
                    inodes.add(f"socket:[{words[9]}]")
    for entry in sorted((entry for entry in proc.iterdir() if entry.name.isdigit()), key=lambda entry: int(entry.name)):
        with contextlib.suppress(OSError):
            if any(os.readlink(descriptor) in inodes for descriptor in (entry / "fd").iterdir()):
                return int(entry.name)
    return None
