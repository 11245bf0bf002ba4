"""Control groups for tests, where the machine allows any."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path("/sys/fs/cgroup")


@contextlib.contextmanager
def memory_groups(*limits: int) -> Iterator[list[Path]]:
    """Groups one inside the other, each with a limit in bytes; 0 is none. Skips the test where none can be made."""
    old = (ROOT / "memory").is_dir()
    name = f"panglot-test-{os.getpid()}-{time.monotonic_ns()}"
    groups: list[Path] = []
    try:
        above = ROOT / "memory" if old else ROOT
        for number, limit in enumerate(limits):
            group = above / (name if not number else f"level{number}")
            group.mkdir()
            groups.append(group)
            if not old and number + 1 < len(limits):
                (group / "cgroup.subtree_control").write_text("+memory")
            if limit:
                (group / ("memory.limit_in_bytes" if old else "memory.max")).write_text(str(limit))
            above = group
    except OSError as error:
        _remove(groups)
        pytest.skip(f"this machine lets no test make a control group with a limit on memory: {error}")
    try:
        yield groups
    finally:
        _remove(groups)


def _remove(groups: list[Path]) -> None:
    """A group can go when its last process has."""
    for group in reversed(groups):
        for _ in range(100):
            with contextlib.suppress(OSError):
                group.rmdir()
            if not group.exists():
                break
            time.sleep(0.05)


def inside(group: Path) -> list[str]:
    """What to put before a command so that it runs in the group."""
    return ["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh"]
