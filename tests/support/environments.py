"""Virtual environments of tests that want packages ours cannot have. Made once, and kept for later runs."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path

HOME = Path(os.environ.get("PANGLOT_TEST_CACHE", Path.home() / ".cache" / "panglot-tests"))

INSTALL = ("install", "-q", "--disable-pip-version-check")


def fresh(folder: Path) -> str:
    """The interpreter of an environment like ours with nothing in it, not even pip, which takes seconds to install."""
    venv.create(folder, clear=True, with_pip=False)
    return str(folder / "bin" / "python")


def install(python: str, *packages: str) -> None:
    """Have our own pip install into the environment of an interpreter of our version."""
    command = [sys.executable, "-m", "pip", "--python", python, *INSTALL, *packages]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def made(name: str, make: Callable[[Path], None]) -> Path:
    """The folder called `name`, filled by the first who needs it."""
    folder = HOME / name
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "whole").exists():
            make(folder)
            (folder / "whole").touch()
    return folder


def python_with(name: str, *packages: str, base: str = sys.executable) -> str:
    """The interpreter of the environment called `name`, which has these packages."""

    def make(folder: Path) -> None:
        if base == sys.executable:
            install(fresh(folder / "venv"), *packages)
        else:
            subprocess.run([base, "-m", "venv", "--clear", folder / "venv"], check=True)
            subprocess.run([folder / "venv" / "bin" / "python", "-m", "pip", *INSTALL, *packages], check=True)

    return str(made(name, make) / "venv" / "bin" / "python")


def over_ours(name: str, *packages: str) -> dict[str, str]:
    """The variables by which our interpreter has these packages, and of all others those of our own environment.

    Nothing that they depend on is installed, which makes it a matter of seconds; so all that ours lacks is named.
    """

    def make(folder: Path) -> None:
        install(
            sys.executable, "--no-deps", "--no-compile", "--upgrade", "--target", str(folder / "packages"), *packages
        )

    version = ".".join(map(str, sys.version_info[:2]))
    return {**os.environ, "PYTHONPATH": str(made(f"{name}-on-{version}", make) / "packages")}
