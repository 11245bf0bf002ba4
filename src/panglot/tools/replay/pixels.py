"""Pictures as arrays. A further process decodes them: they may be hostile, and no tool loads an image library."""

from __future__ import annotations

import contextlib
import struct
import subprocess
import sys
from types import TracebackType
from typing import Any

from panglot.tools import arrays

HEADER = struct.Struct("<IIII")


class Pixels:
    """The decoder, a context manager. It starts when it is first needed. `problem` tells why a picture failed."""

    def __init__(self, python: str = sys.executable) -> None:
        self._python = python
        self._process: subprocess.Popen[bytes] | None = None
        self.problem = ""

    def __enter__(self) -> Pixels:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()

    def decoded(self, picture: bytes) -> Any:
        """An array of height, width and channels; None where the picture cannot be decoded."""
        if self._process is None:
            self._process = subprocess.Popen(
                [self._python, "-m", "panglot_worker.files.pixels"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            )  # fmt: skip
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(OSError, struct.error, ValueError):
            process.stdin.write(struct.pack("<I", len(picture)) + picture)
            process.stdin.flush()
            height, width, channels, size = HEADER.unpack(process.stdout.read(HEADER.size))
            content = process.stdout.read(size)
            if channels:
                return arrays.of_bytes("u1", (height, width, channels), content)
            self.problem = content.decode(errors="replace")
            return None
        # Out of step or dead: the next picture gets a new process.
        self.problem = "the decoder died of it"
        self.__exit__(None, None, None)
        self._process = None
        return None
