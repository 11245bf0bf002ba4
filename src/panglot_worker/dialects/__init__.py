"""Finds the class of a dialect: in its folder here, or in the folder that the front names for an installed one."""

from __future__ import annotations

import importlib
import os
import sys
from importlib import util
from types import ModuleType
from typing import Any, Type

from panglot_worker.dialects.base import Dialect, Package, Stages
from panglot_worker.errors import ScriptError
from panglot_worker.line import wire

REQUIRED = ("load", "describe")
"""The methods that every dialect must define."""


def find(package: Package) -> Type[Dialect]:
    """The class that the dialect's folder calls DIALECT. Raises ScriptError where it is missing or is no dialect."""
    name = "%s.%s" % (__name__, package.dialect)
    if package.dialect_folder:
        _register(name, package.dialect_folder)
    module = importlib.import_module(name)
    dialect: Any = getattr(module, "DIALECT", None)
    if not isinstance(dialect, type) or not issubclass(dialect, Dialect):
        raise _unusable(package, module, "it must define DIALECT, a subclass of panglot_worker.dialects.base.Dialect")
    missing = [method for method in REQUIRED if getattr(dialect, method) is getattr(Dialect, method)]
    if missing:
        raise _unusable(package, module, "its class %s must define %s" % (dialect.__name__, " and ".join(missing)))
    return dialect


def check_stages(dialect: Dialect) -> None:
    """Raises ScriptError where the result of `load` cannot be served."""
    stages, name = dialect.stages, type(dialect).__name__
    # A server of the dialect's own may take items without stages.
    if stages is None and dialect.server != Dialect.server:
        return
    if not isinstance(stages, Stages):
        raise ScriptError("%s.load must return Stages, not %s" % (name, type(stages).__name__))
    unknown = sorted(stages.script_code.difference(wire.STAGES))
    if unknown:
        raise ScriptError("%s.load names the stage '%s'; there are %s" % (name, unknown[0], ", ".join(wire.STAGES)))


def _unusable(package: Package, module: ModuleType, why: str) -> ScriptError:
    return ScriptError("the dialect '%s' cannot be used: %s" % (package.dialect, why), module.__file__ or "")


def _register(name: str, folder: str) -> None:
    """Make a folder importable under the name it would have here; nothing is added to sys.path."""
    file = os.path.join(folder, "__init__.py")
    spec = util.spec_from_file_location(name, file, submodule_search_locations=[folder])
    if spec is None or spec.loader is None:
        raise ImportError("%s cannot be imported as Python" % file)
    module = util.module_from_spec(spec)
    # Before its code runs: the other modules of the folder are imported by way of this one.
    sys.modules[name] = module
    spec.loader.exec_module(module)
