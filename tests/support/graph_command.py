"""`megflow_run` as a process under test."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

START = "from panglot.dialects.megflow.command import main; main()"


class Command:
    """Runs in a folder; its output is collected. Used as a context it is stopped at the end."""

    def __init__(self, *arguments: str, cwd: Path, env: dict[str, str] | None = None) -> None:
        environment = {key: value for key, value in os.environ.items() if not key.startswith("PANGLOT_")}
        environment.update(env or {})
        self.text = ""
        self.process = subprocess.Popen(
            [sys.executable, "-c", START, *arguments], cwd=cwd, env=environment, text=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.text += line

    def wait_log(self, pattern: str, seconds: float = 30) -> re.Match[str]:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            found = re.search(pattern, self.text)
            if found is not None:
                return found
            if self.process.poll() is not None:
                self._reader.join(2)
            time.sleep(0.02)
        raise AssertionError(f"{pattern!r} not in the output:\n{self.text}")

    def end(self, seconds: float = 60) -> int:
        """Wait for it to end by itself; the exit code."""
        code = self.process.wait(seconds)
        self._reader.join(5)
        return code

    def __enter__(self) -> Command:
        return self

    def __exit__(self, *exc: object) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)
        self._reader.join(5)
        assert self.process.stdout is not None
        self.process.stdout.close()
