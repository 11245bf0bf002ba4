"""Which process listens on a port or a Unix socket of this machine."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

PROC = Path("/proc")
LISTENS = "0A"
"""The state of a TCP socket that listens, in /proc/net/tcp."""
ACCEPTS = 0x10000
"""The flag of a Unix socket that listens."""


def listener(port: int, proc: Path = PROC) -> int | None:
    """The process that listens on a port; None without one, and where this user may not look into the process."""
    inodes = set()
    for table in ("net/tcp", "net/tcp6"):
        with contextlib.suppress(OSError):
            for line in (proc / table).read_text().splitlines()[1:]:
                words = line.split()
                if words[3] == LISTENS and int(words[1].rpartition(":")[2], 16) == port:
                    inodes.add(f"socket:[{words[9]}]")
    return _holder(inodes, proc)


def socket_listener(path: str, proc: Path = PROC) -> int | None:
    """The process that listens on the Unix socket at a path; None as for `listener`."""
    inodes = set()
    with contextlib.suppress(OSError):
        for line in (proc / "net/unix").read_text().splitlines()[1:]:
            words = line.split(maxsplit=7)
            if len(words) == 8 and words[7] == os.path.abspath(path) and int(words[3], 16) & ACCEPTS:
                inodes.add(f"socket:[{words[6]}]")
    return _holder(inodes, proc)


def _holder(inodes: set[str], proc: Path) -> int | None:
    """The first process that has one of these sockets open."""
    for entry in sorted((entry for entry in proc.iterdir() if entry.name.isdigit()), key=lambda entry: int(entry.name)):
        with contextlib.suppress(OSError):
            if any(os.readlink(descriptor) in inodes for descriptor in (entry / "fd").iterdir()):
                return int(entry.name)
    return None
