"""Panglot serves inference scripts, unmodified, behind one fast and safe HTTP server."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from panglot.client import AsyncClient as AsyncClient
    from panglot.client import CallError as CallError
    from panglot.client import Client as Client
    from panglot_worker.scripts.names import ClientError as ClientError
    from panglot_worker.scripts.names import File as File
    from panglot_worker.scripts.names import Interrupted as Interrupted
    from panglot_worker.scripts.names import RequestInfo as RequestInfo
    from panglot_worker.scripts.names import Response as Response
    from panglot_worker.scripts.names import progress as progress
    from panglot_worker.scripts.names import request as request
    from panglot_worker.scripts.names import requests as requests
    from panglot_worker.scripts.names import route as route

__version__ = "0.2.0"

FOR_SCRIPTS = (
    "ClientError",
    "File",
    "Interrupted",
    "RequestInfo",
    "Response",
    "progress",
    "request",
    "requests",
    "route",
)
CLIENTS = ("AsyncClient", "CallError", "Client")


def __dir__() -> list[str]:
    """So that `dir(panglot)` and editors show what can be imported, and nothing else."""
    return sorted([*(name for name in globals() if name.startswith("__")), *FOR_SCRIPTS, *CLIENTS])


def __getattr__(name: str) -> object:
    """The client's names and those that scripts import, when first used, so that `import panglot` stays light."""
    if name in CLIENTS:
        module = importlib.import_module("panglot.client")
    elif name in FOR_SCRIPTS:
        module = importlib.import_module("panglot_worker.scripts.names")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(module, name)
