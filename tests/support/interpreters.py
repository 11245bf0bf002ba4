"""Every CPython from 3.8 up that this machine has."""

from __future__ import annotations

import functools
import importlib.util
import shutil
import subprocess
from pathlib import Path

from support import environments

OLDEST = (3, 8)
NEWEST = (3, 20)


@functools.cache
def found() -> dict[str, str]:
    """Version, such as 3.8, to the path of an interpreter of it."""
    candidates = [shutil.which(f"python3.{minor}") for minor in range(OLDEST[1], NEWEST[1])]
    candidates += [str(path) for path in sorted(Path.home().glob(".pyenv/versions/*/bin/python"))]
    versions: dict[str, str] = {}
    for path in filter(None, candidates):
        code = "import sys, platform; print('%d.%d' % sys.version_info[:2] + ' ' + platform.python_implementation())"
        done = subprocess.run([path, "-c", code], capture_output=True, text=True, check=False)
        version, _, implementation = done.stdout.strip().partition(" ")
        numbers = tuple(int(part) for part in version.split(".")) if version else ()
        if done.returncode == 0 and implementation == "CPython" and numbers >= OLDEST:
            versions.setdefault(version, path)
    return dict(sorted(versions.items(), key=lambda entry: int(entry[0].partition(".")[2])))


def bare(folder: Path) -> str:
    """An interpreter like ours, but with the standard library alone."""
    return environments.fresh(folder)


def with_only(folder: Path, *packages: str) -> str:
    """An interpreter like ours, with the standard library and links to some packages that ours has."""
    python = bare(folder)
    (site,) = folder.glob("lib/python3*/site-packages")
    for name in packages:
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        source = Path(spec.origin).parent
        for path in (source, source.with_name(f"{name}.libs")):
            if path.exists():
                (site / path.name).symlink_to(path)
    return python
