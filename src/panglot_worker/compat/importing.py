"""Changing a module the moment a script imports it, and not before."""

from __future__ import annotations

import contextlib
import importlib.abc
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


class _Once(importlib.abc.MetaPathFinder):
    """A finder for one module, until that module has been imported. Others may search for it as often as they like."""

    def __init__(self, name: str, action: Action) -> None:
        self.name = name
        self.action = action

    def find_spec(
        self, fullname: str, path: Optional[Sequence[str]], target: Optional[ModuleType] = None
    ) -> Optional[ModuleSpec]:
        if fullname != self.name or self not in sys.meta_path:
            return None
        # Those behind this one alone: there may be another `_Once` for this module, which asks the rest in its turn.
        for finder in sys.meta_path[sys.meta_path.index(self) + 1 :]:
            # Finders of older packages, such as six 1.15, have no `find_spec`.
            search = getattr(finder, "find_spec", None)
            spec: Optional[ModuleSpec] = search(fullname, path, target) if search is not None else None
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _Acting(spec.loader, self)
                return spec
        return None

    def has_imported(self, module: ModuleType) -> None:
        with contextlib.suppress(ValueError):
            sys.meta_path.remove(self)
        self.action(module)


class _Acting(importlib.abc.Loader):
    """The loader of a module that was found. Once the module is loaded, it tells its finder."""

    def __init__(self, real: Any, finder: _Once) -> None:
        self.real = real
        self.finder = finder

    def __getattr__(self, name: str) -> Any:
        # Code that only searches may ask the loader for the module's source or path.
        return getattr(self.real, name)

    def create_module(self, spec: ModuleSpec) -> Any:
        return self.real.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        # The module, and any code that looks for its source, must see the module's own loader.
        module.__loader__ = self.real
        if module.__spec__ is not None:
            module.__spec__.loader = self.real
        self.real.exec_module(module)
        self.finder.has_imported(module)
