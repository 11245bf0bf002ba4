"""The version and the modules of an interpreter, found without importing the modules.

The text of this file is run by `python -c` in the worker's interpreter: standard library only, CPython 3.8 or newer.
Its argument and its answer are JSON: see `main`.
"""

from __future__ import annotations

import json
import platform
import sys
from importlib import metadata, util


def main() -> None:
    """Takes `first` and `last` (folders to put around sys.path), `versions` (module: distributions) and `modules`."""
    wanted = json.loads(sys.argv[1])
    # Without the empty entry, which is the current folder.
    rest = [entry for entry in sys.path if entry]
    sys.path[:] = rest
    versions = {name: version(name, distributions) for name, distributions in wanted["versions"].items()}
    # Only now: a folder of the package may have the name of a framework.
    sys.path[:] = wanted["first"] + rest + wanted["last"]
    answer = {
        "executable": sys.executable,
        "version": platform.python_version(),
        "implementation": platform.python_implementation(),
        "versions": versions,
        "missing": [name for name in wanted["modules"] if not is_there(name)],
    }
    print(json.dumps(answer))


def version(name: str, distributions: list[str]) -> str | None:
    """The version of a module; "" where it is unknown, None where there is no such module."""
    if not is_there(name):
        return None
    for distribution in distributions:
        try:
            return str(metadata.version(distribution))
        except metadata.PackageNotFoundError:
            continue
    return ""


def is_there(name: str) -> bool:
    try:
        return name in sys.modules or util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


if __name__ == "__main__":
    main()
