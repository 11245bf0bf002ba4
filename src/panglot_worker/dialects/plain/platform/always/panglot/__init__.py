"""What scripts import: `from panglot import File, ClientError, request, route`.

In a worker this stands for the installed Panglot, whose front never runs beside a script. Outside, in an editor or a
unit test with the folder of `panglot shims` on its path, it gives the same names.
"""

from __future__ import annotations

import importlib.util as _util
import os as _os
import sys as _sys


def _find_worker() -> None:
    """Make panglot_worker importable outside of a worker too, by its location."""
    if "panglot_worker" not in _sys.modules:
        folder = _os.path.abspath(_os.path.join(_os.path.dirname(__file__), *[".."] * 5))
        spec = _util.spec_from_file_location(
            "panglot_worker", _os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
        )
        assert spec is not None and spec.loader is not None  # noqa: PT018
        module = _util.module_from_spec(spec)
        _sys.modules["panglot_worker"] = module
        spec.loader.exec_module(module)


_find_worker()

from panglot_worker.scripts.names import (  # noqa: E402
    ClientError,
    File,
    Interrupted,
    RequestInfo,
    Response,
    progress,
    request,
    requests,
    route,
)

__all__ = ["ClientError", "File", "Interrupted", "RequestInfo", "Response", "progress", "request", "requests", "route"]


def __getattr__(name: str) -> object:
    """Tell why the rest of Panglot is not here."""
    if name in ("AsyncClient", "CallError", "Client"):
        raise ImportError(
            f"panglot.{name} is not there beside a served script: the module panglot is the script's own here. "
            f"To call another server use an HTTP library such as httpx"
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
