"""What plugins of MegFlow graphs import.

A plugin registers classes of nodes with `register`; a graph file names them. `Graph` runs a graph inside a program of
one's own, with PYTHONPATH from `panglot shims megflow`.
"""

import importlib.util as _util
import os as _os
import sys as _sys

from megflow.registry import collect, register, res_register


def _find_worker():
    """The runtime is beside these files; a user's own program has not imported it."""
    if "panglot_worker" not in _sys.modules:
        folder = _os.path.abspath(_os.path.join(_os.path.dirname(__file__), *[_os.pardir] * 5))
        spec = _util.spec_from_file_location(
            "panglot_worker", _os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
        )
        module = _util.module_from_spec(spec)
        _sys.modules["panglot_worker"] = module
        spec.loader.exec_module(module)


# At import, since the names below come from the worker, and a user's own program imports nothing before this.
_find_worker()

from panglot_worker.dialects.megflow.embedding import Graph  # noqa: E402
from panglot_worker.dialects.megflow.graph.envelope import Envelope  # noqa: E402
from panglot_worker.dialects.megflow.graph.futures import (  # noqa: E402
    Future,
    Waker,
    block_on,
    create_future,
    join,
    sleep,
    yield_now,
)

__version__ = "0.3.5"


def version():
    """The version of MegFlow whose plugins run here."""
    return __version__


__all__ = [
    "Envelope",
    "Future",
    "Graph",
    "Waker",
    "__version__",
    "block_on",
    "collect",
    "create_future",
    "join",
    "register",
    "res_register",
    "sleep",
    "version",
    "yield_now",
]
