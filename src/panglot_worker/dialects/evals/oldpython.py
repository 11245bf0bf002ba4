"""Lets sources for Python 2 that parse on Python 3 run there. It changes the package's own modules only.

A module under the package's folders sees builtins of its own: `xrange`, `unicode` and the like, and an `__import__`
that looks beside the importing module first, as Python 2 did. So `import config` and `import evals.config` are one
module. Libraries see nothing of it.
"""

from __future__ import annotations

import builtins
import functools
import importlib
import importlib.util
import os
import sys
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType
from typing import Any, Callable, Collection, Dict, Mapping, Optional, Sequence


def install(folders: Sequence[str], own: Collection[str]) -> "Finder":
    """Load modules below these folders with the old names, for good: a worker holds one package.

    Helpers whose names are in `own` are the package's, although the platform has modules of these names too.
    """
    if not hasattr(sys, "setdefaultencoding"):
        # Scripts of Python 2 call `reload(sys)` and then this, for UTF-8, which Python 3 has anyway.
        sys.setdefaultencoding = lambda name: None  # type: ignore[attr-defined]
    finder = Finder([os.path.realpath(folder) for folder in folders], own)
    sys.meta_path.insert(_position(), finder)
    return finder


def _position() -> int:
    """The position just before the finder of the import path."""
    return next((number for number, entry in enumerate(sys.meta_path) if entry is PathFinder), len(sys.meta_path))


class Finder:
    """Finds what PathFinder finds; modules of the package are loaded with the old names."""

    def __init__(self, folders: Sequence[str], own: Collection[str]) -> None:
        self.folders = tuple(folder + os.sep for folder in folders)
        old = functools.partial(old_import, frozenset(own))
        # A copy for these modules alone: libraries test for names such as `unicode` to tell the versions apart.
        self.builtins: Dict[str, Any] = {**vars(builtins), **OLD_NAMES, "__import__": old}

    def loader(self, name: str, path: str) -> "Loader":
        """A loader for one module of the package."""
        return Loader(name, path, self.builtins)

    def find_spec(
        self, name: str, path: Optional[Sequence[str]], target: Optional[ModuleType] = None
    ) -> Optional[ModuleSpec]:
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and type(spec.loader) is SourceFileLoader and self._is_ours(spec.origin):
            spec.loader = self.loader(spec.loader.name, str(spec.loader.path))
        return spec

    def _is_ours(self, file: Optional[str]) -> bool:
        return file is not None and "site-packages" not in file and os.path.realpath(file).startswith(self.folders)

    def invalidate_caches(self) -> None:
        PathFinder.invalidate_caches()


class Loader(SourceFileLoader):
    """Loads a module that sees builtins of its own."""

    def __init__(self, name: str, path: str, old_builtins: Dict[str, Any]) -> None:
        super().__init__(name, path)
        self.old_builtins = old_builtins

    def exec_module(self, module: ModuleType) -> None:
        # CPython looks here for the builtins of a module; where it is set already, `exec` leaves it.
        module.__dict__["__builtins__"] = self.old_builtins
        super().exec_module(module)


def old_import(
    own: Collection[str],
    name: str,
    globals: Optional[Mapping[str, Any]] = None,
    locals: Optional[Mapping[str, Any]] = None,
    fromlist: Sequence[str] = (),
    level: int = 0,
) -> Any:
    """An import without dots means the importing module's own package first."""
    package = (globals or {}).get("__package__")
    top = name.partition(".")[0]
    # Beside the script, in `evals`, the platform's module of this name comes first: the import path has the package's.
    is_own = package == "evals" and top in own
    if level == 0 and package and not is_own and _is_beside(package, top):
        if fromlist:
            return builtins.__import__(name, globals, locals, fromlist, 1)
        # `import a.b` binds `a`, so that the top module is returned and not the one imported last.
        importlib.import_module(package + "." + name)
        return sys.modules[package + "." + top]
    return builtins.__import__(name, globals, locals, fromlist, level)


def _is_beside(package: str, name: str) -> bool:
    full = package + "." + name
    if full in sys.modules:
        return True
    if package == name or package.startswith(name + "."):
        return False
    try:
        spec = importlib.util.find_spec(full)
    except (ImportError, ValueError):
        return False
    # A folder without __init__.py was no package then.
    return spec is not None and spec.origin is not None


def _reload(module: ModuleType) -> ModuleType:
    """`reload(sys)` only ever meant to bring setdefaultencoding back."""
    return module if module is sys else importlib.reload(module)


def _compare(first: Any, second: Any) -> int:
    return int(first > second) - int(first < second)


OLD_NAMES: Dict[str, Callable[..., Any]] = {
    "xrange": range,
    "unicode": str,
    "basestring": str,
    "long": int,
    "unichr": chr,
    "raw_input": input,
    "reduce": functools.reduce,
    "reload": _reload,
    "cmp": _compare,
}
