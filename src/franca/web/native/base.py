"""What a platform's clients rely on: paths, and the words for failures."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from franca.engine.call import Fault

PUBLIC, INFER, ADMIN = "public", "infer", "admin"
"""Who may call a route: anyone; whoever may use the model; whoever runs the server."""

ErrorBody = Callable[[Fault, str], tuple[bytes, bytes]]
"""From a fault and a request id: content type and body."""


@dataclass(frozen=True)
class InferRoute:
    """A POST that reaches the script."""

    path: str
    name: str
    access: str = INFER


@dataclass(frozen=True)
class Contract:
    """The native routes of a dialect and how its platform words an error."""

    routes: tuple[InferRoute, ...]
    error: ErrorBody


def neutral_error(fault: Fault, request_id: str) -> tuple[bytes, bytes]:
    error = {"code": fault.code, "message": fault.message, "request_id": request_id}
    return b"application/json", json.dumps({"error": error}, ensure_ascii=False).encode()


def v2_error(fault: Fault, request_id: str) -> tuple[bytes, bytes]:
    return b"application/json", json.dumps({"error": fault.message}, ensure_ascii=False).encode()
