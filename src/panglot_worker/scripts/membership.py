"""Scripts with relative imports, such as `from . import net`: each is a module of the package that its folder is.

Python allows such imports only inside of packages. So the script gets the name that it has there, `folder.script`, and
pickles and child processes find its classes and functions by that name. All other scripts have a name of their own, as
if they had been started by `python script.py`.
"""

from __future__ import annotations

import ast
import importlib
import os
import re
import sys
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import List, Tuple

PRIVATE = "panglot_package"
"""The name of the package where its folder's name cannot be that of a module, such as `model-1.2`."""
SIGN = re.compile(rb"\bfrom\s*\.")


def dots(path: str) -> int:
    """How many dots the longest relative import of a file begins with; 0 where there is none."""
    with open(path, "rb") as file:
        text = file.read()
    # Parsing is slow, and hardly any script has relative imports.
    if SIGN.search(text) is None:
        return 0
    try:
        tree = ast.parse(text, path)
    except (SyntaxError, ValueError):
        # The import that follows reports the error, with its line.
        return 0
    return max((node.level for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)), default=0)


def join(path: str, levels: int) -> str:
    """Import the package that a script with such imports is in, and return the script's name there.

    The folder above the package becomes the last one of the import path. Raises what an `__init__.py` raises.
    """
    folder, file = os.path.split(os.path.abspath(path))
    root, names = _enclosing(folder, levels)
    if not names:
        names = _private(folder, levels)
    elif root not in sys.path:
        # Last, so that nothing in that folder hides an installed package.
        sys.path.append(root)
    importlib.import_module(".".join(names))
    return ".".join([*names, os.path.splitext(file)[0].replace(".", "_")])


def _enclosing(folder: str, levels: int) -> Tuple[str, List[str]]:
    """The folder to import from, and the names of the folders from there to the script's. No names where none will do.

    It goes up further where a name belongs to another module already, and where the folder above is a package too.
    """
    names: List[str] = []
    here = folder
    while os.path.basename(here) and "." not in os.path.basename(here):
        names.insert(0, os.path.basename(here))
        above = os.path.dirname(here)
        is_inside = os.path.isfile(os.path.join(above, "__init__.py"))
        if len(names) >= levels and not is_inside and _is_free(names[0], here, above):
            return above, names
        here = above
    return "", []


def _is_free(name: str, folder: str, above: str) -> bool:
    """Whether the name means that folder and nothing else, once the folder above it is on the import path."""
    module = sys.modules.get(name)
    if module is not None:
        return folder in getattr(module, "__path__", ())
    if name in getattr(sys, "stdlib_module_names", ()):
        return False
    spec = PathFinder.find_spec(name, [*sys.path, above])
    return spec is not None and list(spec.submodule_search_locations or ())[:1] == [folder]


def _private(folder: str, levels: int) -> List[str]:
    """Make the package PRIVATE of the folder that the longest import leads to. Returns the names below that folder."""
    inside: List[str] = []
    for _ in range(levels - 1):
        folder, name = os.path.split(folder)
        inside.insert(0, name)
    package = ModuleType(PRIVATE)
    package.__path__ = [folder]
    package.__spec__ = ModuleSpec(PRIVATE, None, is_package=True)
    sys.modules[PRIVATE] = package
    return [PRIVATE, *inside]
