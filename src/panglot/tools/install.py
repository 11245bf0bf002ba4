"""`panglot serve --install`: what a package asks for, in a cached virtual environment of its own.

The environment stands on the interpreter the script would run in: that one's packages are visible in it, and what is
installed here wins over them, as on platforms that install on top of an image.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import logging
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from panglot.errors import StartError
from panglot.package import Package
from panglot.settings import Settings

log = logging.getLogger("panglot")
DONE = "panglot-installed.json"
REQUIREMENTS = "requirements.txt"
SHOWN = 12
"""Lines of pip's output shown when it fails."""

PATHS = """
import json, sys
path = [entry for entry in sys.path if entry.endswith("-packages")]
print(json.dumps({"version": sys.version, "path": path}))
"""
"""Asks an interpreter where its packages are."""


def commands(package: Package) -> list[tuple[str, ...]]:
    """The arguments of every `pip install`, in order: the platform's own list, then requirements.txt."""
    arguments = list(package.installs)
    file = requirements(package)
    if file is not None:
        arguments.append(("-r", os.path.relpath(file, package.folder)))
    return arguments


def requirements(package: Package) -> Path | None:
    """The requirements.txt of a package, if it asks for anything."""
    for folder in (package.folder, package.folder.parent if package.folder.name == "model" else package.folder):
        file = folder / REQUIREMENTS
        if file.is_file() and any(_is_line(line) for line in file.read_text("utf-8", "replace").splitlines()):
            return file
    return None


def _is_line(line: str) -> bool:
    return bool(line.strip()) and not line.strip().startswith("#")


def environment(package: Package, settings: Settings, cache: Path | None = None) -> str:
    """The interpreter to run the script in. Its environment is made, unless it is there already. Raises StartError."""
    wanted = commands(package)
    if not wanted:
        return settings.python
    if settings.inline:
        raise StartError("--inline runs the script in Panglot's own interpreter, so --install cannot help")
    python = settings.python or sys.executable
    version, path = _ask(python)
    folder = (cache or cache_folder()) / _name(package, python, version, wanted)
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder):
        if not (folder / DONE).is_file():
            _build(folder, python, path, wanted, package)
    return str(folder / "venv" / "bin" / "python")


def cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "panglot" / "environments"


def _ask(python: str) -> tuple[str, list[str]]:
    """The version of an interpreter, and the folders its packages are in."""
    try:
        done = subprocess.run([python, "-c", PATHS], capture_output=True, text=True, timeout=60, check=True)
        answer = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise StartError(f"{python} is no Python interpreter: {error}") from None
    return answer["version"], answer["path"]


def _name(package: Package, python: str, version: str, wanted: list[tuple[str, ...]]) -> str:
    """The name of the folder: it depends on the interpreter, the commands, and the files they name."""
    digest = hashlib.sha256(f"{os.path.realpath(python)} {python} {version} {wanted}".encode())
    for words in wanted:
        file = package.folder / words[-1]
        if file.is_file():
            digest.update(file.read_bytes())
    plain = re.sub(r"[^A-Za-z0-9]+", "-", package.name).strip("-")[:40] or "package"
    return f"{plain}-{digest.hexdigest()[:16]}"


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder: one process builds, the others wait and use what it built."""
    with open(folder / "lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _build(folder: Path, python: str, path: list[str], wanted: list[tuple[str, ...]], package: Package) -> None:
    place = folder / "venv"
    shutil.rmtree(place, ignore_errors=True)
    log.info("making an environment for %s in %s", package.name, place, extra={"package": package.name})
    _run([python, "-m", "venv", str(place)], package.folder, "a virtual environment cannot be made")
    inner = str(place / "bin" / "python")
    site = Path(_ask(inner)[1][0])
    (site / "panglot-base.pth").write_text("\n".join(path) + "\n", encoding="utf-8")
    for words in wanted:
        line = shlex.join(["pip", "install", *words])
        log.info("%s", line, extra={"package": package.name})
        _run([inner, "-m", "pip", "--disable-pip-version-check", "install", *words], package.folder, f"{line} failed")
    (folder / DONE).write_text(json.dumps({"python": python, "commands": wanted}), encoding="utf-8")


def _run(command: list[str], folder: Path, problem: str) -> None:
    done = subprocess.run(
        command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        errors="replace", check=False,
    )  # fmt: skip
    if done.returncode:
        lines = [line for line in done.stdout.splitlines() if line.strip()]
        for line in lines[-SHOWN:]:
            log.error("%s", line)
        reason = next((line for line in reversed(lines) if line.startswith("ERROR:")), lines[-1] if lines else "")
        raise StartError(f"{problem}: {reason.removeprefix('ERROR: ')}", file=str(folder))
