"""One folder per dialect, found by being here, or by the path the front names for one that comes from elsewhere."""

from __future__ import annotations

import importlib
import os
import sys
from importlib import util
from typing import Type

from panglot_worker.dialects.base import Dialect, Package


def find(package: Package) -> Type[Dialect]:
    """The class that its folder calls DIALECT."""
    name = "%s.%s" % (__name__, package.dialect)
    if package.dialect_folder:
        _register(name, package.dialect_folder)
    dialect: Type[Dialect] = importlib.import_module(name).DIALECT
    return dialect


def _register(name: str, folder: str) -> None:
    """Make a folder importable under the name it would have here; nothing is added to sys.path."""
    file = os.path.join(folder, "__init__.py")
    spec = util.spec_from_file_location(name, file, submodule_search_locations=[folder])
    if spec is None or spec.loader is None:
        raise ImportError("%s cannot be imported as Python" % file)
    module = util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
