"""Ports for programs that must be told their port before they listen.

The kernel's own choice (port 0) is free only until the next connection: between the choice and the program's `bind`,
any client on this machine may be given the same number. These ports lie below the range that the kernel gives to
clients, and a lock keeps each of them for the process that took it, until that process ends.
"""

from __future__ import annotations

import fcntl
import os
import random
import socket
import tempfile
from pathlib import Path
from typing import IO

FIRST, LAST = 20_000, 32_000
LOCKS = Path(tempfile.gettempdir()) / f"panglot-test-ports-{os.getuid()}"
_taken: list[IO[str]] = []


def free_port() -> int:
    LOCKS.mkdir(exist_ok=True)
    for port in random.SystemRandom().sample(range(FIRST, LAST), LAST - FIRST):
        lock = (LOCKS / str(port)).open("w")
        if _is_ours(lock) and _is_free(port):
            _taken.append(lock)
            return port
        lock.close()
    raise AssertionError(f"no port between {FIRST} and {LAST} is free")


def _is_ours(lock: IO[str]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
