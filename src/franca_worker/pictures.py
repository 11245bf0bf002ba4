"""Pillow's limit on picture size, set the moment a script imports Pillow and not before."""

from __future__ import annotations

import importlib.abc
import importlib.util
import sys
import warnings
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Optional, Sequence


class PillowLimit(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Stands in for the first import of `PIL.Image`, then steps aside."""

    def __init__(self, pixels: int) -> None:
        self.pixels = pixels
        self.real: Any = None

    def find_spec(
        self, fullname: str, path: Optional[Sequence[str]], target: Optional[ModuleType] = None
    ) -> Optional[ModuleSpec]:
        if fullname != "PIL.Image":
            return None
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
        self.real.exec_module(module)
        module.MAX_IMAGE_PIXELS = self.pixels  # type: ignore[attr-defined]
        # Between one and two times the limit Pillow only warns.
        warnings.simplefilter("error", module.DecompressionBombWarning)


def limit(pixels: int) -> None:
    sys.meta_path.insert(0, PillowLimit(pixels))
