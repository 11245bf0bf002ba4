"""Python runs this when it starts with the folders of `panglot shims` on PYTHONPATH.

It gives the folders the order that they have in a worker: a stand-in for a package comes after the package itself, if
that is installed. Then it runs `platform/starting.py`, which prepares the process before a script is imported.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
ALWAYS, FALLBACK = (os.path.join("platform", kind) for kind in ("always", "fallback"))


def start() -> None:
    """Put the platform's fallbacks behind the environment's own packages and run what a platform wants at start."""
    path = [entry for entry in sys.path if os.path.abspath(entry) != HERE]
    last = [entry for entry in path if entry.endswith(FALLBACK)]
    sys.path[:] = [entry for entry in path if entry not in last] + last
    for folder in dict.fromkeys(os.path.dirname(entry) for entry in path if entry.endswith((ALWAYS, FALLBACK))):
        file = os.path.join(folder, "starting.py")
        if os.path.isfile(file):
            if "panglot_worker" not in sys.modules:
                loaded("panglot_worker", os.path.join(os.path.dirname(HERE), "__init__.py"))
            loaded("panglot_starting", file)


def loaded(name: str, file: str) -> Any:
    """Import a file, or a package by its `__init__.py`, without adding anything to sys.path."""
    inside = [os.path.dirname(file)] if file.endswith("__init__.py") else None
    spec = importlib.util.spec_from_file_location(name, file, submodule_search_locations=inside)
    assert spec is not None and spec.loader is not None  # noqa: PT018
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def hand_over() -> None:
    """Run the sitecustomize that this one stands before, if there is one."""
    # Python imports only the first sitecustomize on the path; with ours removed, the next one is found.
    own = sys.modules.pop("sitecustomize", None)
    try:
        importlib.import_module("sitecustomize")
    except ModuleNotFoundError as error:
        if error.name != "sitecustomize":
            raise
        if own is not None:
            sys.modules["sitecustomize"] = own


if __name__ == "sitecustomize":
    start()
    hand_over()
