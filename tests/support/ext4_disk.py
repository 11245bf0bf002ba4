"""A real file system whose power can be cut: ext4 in a file, on a loop device. Root alone may mount it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.server import wait_until

SHUTDOWN = 0x8004587D
"""EXT4_IOC_SHUTDOWN."""
WITHOUT_FLUSHING = 2
SIZE = 64 << 20


class Disk:
    """A file system that is mounted at `path`."""

    def __init__(self, folder: Path) -> None:
        self._image, self.path = folder / "disk.img", folder / "disk"
        self.path.mkdir()
        with self._image.open("wb") as file:
            file.truncate(SIZE)
        _run("mkfs.ext4", "-q", str(self._image))
        self.mount()

    def mount(self) -> None:
        _run("mount", "-o", "loop", str(self._image), str(self.path))

    def cut(self) -> None:
        """Cut the power: what was not synced is lost, in the journal too."""
        folder = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.ioctl(folder, SHUTDOWN, struct.pack("I", WITHOUT_FLUSHING))
        finally:
            os.close(folder)

    def unmount(self) -> None:
        """Take it away, once no process has a file of it."""
        wait_until(lambda: subprocess.run(["umount", self.path], capture_output=True, check=False).returncode == 0, 30)


def _run(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"{words[0]}: {done.stderr.strip()}")


@contextlib.contextmanager
def disk(folder: Path) -> Iterator[Disk]:
    """A disk for the length of a test, which is skipped where none can be mounted."""
    try:
        made = Disk(folder)
    except OSError as error:
        pytest.skip(f"no file system can be mounted here: {error}")
    try:
        yield made
    finally:
        made.unmount()
