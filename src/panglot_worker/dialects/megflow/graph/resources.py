"""Resources: objects shared by the nodes of a scope, made when first needed."""

from __future__ import annotations

import copy
import threading
from typing import Any, Dict, List, Mapping, Optional

from panglot_worker.graphs.configuration import Resource


class LazyResource:
    """A resource of one scope, made at its first use."""

    def __init__(self, declared: Resource, cls: Any) -> None:
        self.declared = declared
        self.cls = cls
        self._lock = threading.Lock()
        self._made: Any = None
        self._done = False

    def get(self) -> Any:
        """The object. A construction that raises is tried once more; raises what that raises."""
        # Held during the construction: all nodes get the same object, and the second waits for it.
        with self._lock:
            if not self._done:
                try:
                    self._made = self._make()
                except Exception:
                    self._made = self._make()
                self._done = True
            return self._made

    def _make(self) -> Any:
        return self.cls(self.declared.name, copy.deepcopy(self.declared.args))


class ResourceScope:
    """The resources a graph instance sees: its own, those its parent passes, and the global ones, in this order."""

    def __init__(self, own: Mapping[str, LazyResource], outer: Mapping[str, LazyResource]) -> None:
        self._visible: Dict[str, LazyResource] = {**outer, **own}

    def find(self, name: str) -> Optional[LazyResource]:
        return self._visible.get(name)

    def names(self) -> List[str]:
        return list(self._visible)

    def passed(self, names: List[str], everywhere: Mapping[str, LazyResource]) -> Dict[str, LazyResource]:
        """The resources a subgraph sees besides its own."""
        return {**everywhere, **{name: self._visible[name] for name in names if name in self._visible}}
