"""A CPython 3.10 with MegEngine, which has no packages for newer ones."""

from __future__ import annotations

import fcntl
import os
import subprocess
from pathlib import Path

from support import interpreters

WANTED = ("megengine==1.13.0", "numpy<1.24")
HOME = Path(os.environ.get("PANGLOT_TEST_CACHE", Path.home() / ".cache" / "panglot-tests"))


def interpreter() -> str:
    """The interpreter of that environment, made once and kept for later runs; empty where there is no CPython 3.10."""
    base = interpreters.found().get("3.10", "")
    if not base:
        return ""
    folder = HOME / "megengine-1.13.0"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "whole").exists():
            subprocess.run([base, "-m", "venv", "--clear", folder / "venv"], check=True)
            pip = [folder / "venv" / "bin" / "python", "-m", "pip", "install", "-q", "--disable-pip-version-check"]
            subprocess.run([*pip, *WANTED], check=True)
            (folder / "whole").touch()
    return str(folder / "venv" / "bin" / "python")
