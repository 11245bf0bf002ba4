"""ACME's HTTP contract: POST /acme/ask, GET /acme/alive, and errors with a number."""

from __future__ import annotations

import json
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from panglot.engine.call import Fault
from panglot.packages.package import Package
from panglot.settings import Settings
from panglot.web.contract import PUBLIC, Contract, ErrorAnswer, InferRoute, Page

NUMBERS = {"timeout": 30, "queue_full": 31, "not_found": 40}


def contract(package: Package, settings: Settings) -> Contract:
    return Contract(
        routes=(InferRoute("/acme/ask", "/acme/ask"),),
        error=error,
        unknown=error,
        pages=(Page("/acme/alive", PUBLIC, alive),),
    )


def error(fault: Fault, request_id: str) -> ErrorAnswer:
    body = {"acme_error": {"number": NUMBERS.get(fault.code, 99), "text": fault.message}}
    return ErrorAnswer(fault.status, b"application/json", json.dumps(body).encode())


def alive(front: Any, request: Request) -> Response:
    return Response("yes", media_type="text/plain")
