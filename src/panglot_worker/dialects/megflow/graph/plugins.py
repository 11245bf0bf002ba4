"""Importing a plugin folder, and what its decorators registered."""

from __future__ import annotations

import importlib
import os
import sys
from types import ModuleType
from typing import Any, Callable, List

from panglot_worker.dialects.megflow.graph import builtin
from panglot_worker.dialects.megflow.graph.runtime import KnownClasses
from panglot_worker.dialects.megflow.servers import listening as servers
from panglot_worker.dialects.megflow.video import input_node, server_node
from panglot_worker.graphs.errors import GraphError
from panglot_worker.graphs.ports import declared


def modules(plugin: str, module_path: str) -> List[str]:
    """The modules of a plugin folder by their names below the module path. Raises GraphError when it is not below."""
    inside = os.path.relpath(os.path.realpath(plugin), os.path.realpath(module_path))
    if inside.startswith(os.pardir):
        raise GraphError("the plugin folder %s is not inside the module path %s" % (plugin, module_path),
                         fix="give a folder above it with --module")  # fmt: skip
    prefix = [] if inside == os.curdir else inside.split(os.sep)
    names = []
    for entry in sorted(os.scandir(plugin), key=lambda entry: entry.name):
        if entry.name.endswith(".py") and entry.is_file():
            stem = entry.name[:-3]
            if stem != "__init__":
                names.append(".".join([*prefix, stem]))
            elif prefix:
                names.append(".".join(prefix))
        elif entry.is_dir() and os.path.isfile(os.path.join(entry.path, "__init__.py")):
            names.append(".".join([*prefix, entry.name]))
    return names


def load(plugin: str, module_path: str, progress: Callable[[str], None]) -> None:
    """Import all modules of a plugin folder. Raises whatever they raise."""
    path = os.path.realpath(module_path)
    if path in sys.path:
        sys.path.remove(path)
    # The first entry: modules of the plugin win over installed ones of the same name.
    sys.path.insert(0, path)
    for name in modules(plugin, module_path):
        _open_folder(path, name)
        progress("importing %s" % name)
        importlib.import_module(name)


def _open_folder(path: str, name: str) -> None:
    """Let a folder without `__init__.py` be a package even where a module of its own has its name (ball/ball.py)."""
    top, dot, _ = name.partition(".")
    folder = os.path.join(path, top)
    if dot and top not in sys.modules and not os.path.exists(os.path.join(folder, "__init__.py")):
        package = ModuleType(top)
        package.__path__ = [folder]
        sys.modules[top] = package


def known_classes() -> KnownClasses:
    """Everything a graph may name: the built-in nodes, then all that is registered; the last of a name wins."""
    known = KnownClasses()
    known.nodes.update(builtin.NODES)
    known.nodes.update(servers.NODES)
    known.nodes.update(server_node.NODES)
    known.nodes.update(input_node.NODES)
    registered = importlib.import_module("megflow").collect()
    for entry in registered["nodes"]:
        cls: Any = entry["code"]
        try:
            known.add(entry["name"], cls, declared(entry["inputs"], entry["outputs"]))
        except ValueError as error:
            raise GraphError("%s: %s" % (entry["name"], error), *where(cls)) from None
        if not callable(getattr(cls, "exec", None)):
            raise GraphError("the class %s has no method exec(self)" % cls.__name__, *where(cls))
    known.resources = {entry["name"]: entry["code"] for entry in registered["resources"]}
    return known


def where(cls: Any) -> Any:
    """File and line of a class."""
    import inspect

    try:
        return inspect.getsourcefile(cls) or "", inspect.getsourcelines(cls)[1]
    except (OSError, TypeError):
        return "", 0
