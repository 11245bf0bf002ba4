"""Virtual environments of tests that want packages ours cannot have. Made once, and kept for later runs."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

HOME = Path(os.environ.get("PANGLOT_TEST_CACHE", Path.home() / ".cache" / "panglot-tests"))


def python_with(name: str, *packages: str, base: str = sys.executable) -> str:
    """The interpreter of the environment called `name`, which has these packages."""
    folder = HOME / name
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "whole").exists():
            subprocess.run([base, "-m", "venv", "--clear", folder / "venv"], check=True)
            pip = [folder / "venv" / "bin" / "python", "-m", "pip", "install", "-q", "--disable-pip-version-check"]
            subprocess.run([*pip, *packages], check=True)
            (folder / "whole").touch()
    return str(folder / "venv" / "bin" / "python")
