"""Changing a module the moment a script imports it, and not before."""

from __future__ import annotations

import importlib.abc
import importlib.util
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Callable, Optional, Sequence

Action = Callable[[Any], None]


def after_import(name: str, action: Action) -> None:
    """Call `action(module)` once the module is there: now, or right after its first import."""
    module = sys.modules.get(name)
    if module is not None:
        action(module)
    else:
        sys.meta_path.insert(0, _Once(name, action))


class _Once(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Stands in for the first import of a module, then steps aside."""

    def __init__(self, name: str, action: Action) -> None:
        self.name = name
        self.action = action
        self.real: Any = None

    def find_spec(
        self, fullname: str, path: Optional[Sequence[str]], target: Optional[ModuleType] = None
    ) -> Optional[ModuleSpec]:
        if fullname != self.name:
            return None
        # Removed first: `find_spec` below asks all finders, and would find this one again for ever.
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is None or spec.loader is None:
            return None
        self.real = spec.loader
        spec.loader = self
        return spec

    def create_module(self, spec: ModuleSpec) -> Any:
        return self.real.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        # The module, and any code that looks for its source, must see the module's own loader.
        module.__loader__ = self.real
        if module.__spec__ is not None:
            module.__spec__.loader = self.real
        self.real.exec_module(module)
        self.action(module)
