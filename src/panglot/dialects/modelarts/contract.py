"""ModelArts: POST / and GET /health of its model server, and the errors of the gateway in front of it."""

from __future__ import annotations

import html
import json
from http import HTTPStatus
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from panglot.engine import interface as states
from panglot.engine.call import Fault
from panglot.packages.package import Package
from panglot.settings import Settings
from panglot.web.contract import PUBLIC, Contract, ErrorAnswer, ErrorWriter, InferRoute, Page, neutral_error
from panglot.web.models import Model

JSON, HTML = b"application/json", b"text/html"
GATEWAY = {
    401: ("APIG.0301", "Incorrect IAM authentication information"),
    413: ("APIG.0201", "Request entity too large"),
    504: ("APIG.0203", "Backend timeout"),
}
"""The gateway's codes and sentences, by status."""
UNAVAILABLE = {
    "queue_full": ("ModelArts.4206", "Too many requests are waiting"),
    "loading": ("ModelArts.4302", "The model is still loading"),
    "waking": ("ModelArts.4302", "The model is still loading"),
}
BROKEN_BACKEND = ("ModelArts.4503", "The service cannot be reached now")


def contract(package: Package, settings: Settings) -> Contract:
    return Contract(
        routes=(InferRoute("/", "/"),),
        error=_error_writer(bool(package.options.get("raw"))),
        pages=(Page("/health", PUBLIC, health),),
        unknown=unknown,
    )


def health(model: Model, request: Request) -> Response:
    """OK once the script is loaded. The platform's own server does not listen before that."""
    if model.engine.state in states.SERVING:
        return Response('{"status": "OK"}', media_type="text/html")
    return Response('{"status": "NOT READY"}', 503, {"retry-after": "2"}, "text/html")


def _error_writer(raw: bool) -> ErrorWriter:
    failed, unusable = (_PY_0105, _PY_0101) if raw else (_MR_0105, _MR_0101)

    def error(fault: Fault, request_id: str) -> ErrorAnswer:
        """The gateway's answer to a request that never reaches the script, else the answer of the model server."""
        if fault.status in GATEWAY:
            return _json(fault.status, _gateway(*GATEWAY[fault.status]))
        if fault.status == 503:
            return _json(503, _gateway(*UNAVAILABLE.get(fault.code, BROKEN_BACKEND)))
        if fault.status == 500:
            return _json(500, failed)
        if fault.code in ("bad_request", "poisonous"):
            return _json(fault.status, unusable)
        return page(fault)

    return error


_MR_0101 = {"erno": "MR.0101", "msg": "The input parameter is invalid", "words_result": {}}
_MR_0105 = {"erno": "MR.0105", "msg": "Recognition failed", "words_result": {}}
_PY_0101 = {"erno": "PY.0101", "msg": "The input data is invalid", "error_info": ""}
_PY_0105 = {"erno": "PY.0105", "msg": "Predict failed", "error_info": ""}


def _gateway(code: str, message: str) -> dict[str, Any]:
    return {"error_code": code, "error_msg": message}


def _json(status: int, value: dict[str, Any]) -> ErrorAnswer:
    return ErrorAnswer(status, JSON, json.dumps(value).encode())


def page(fault: Fault) -> ErrorAnswer:
    """The page of the web framework that the platform's server uses."""
    phrase = HTTPStatus(fault.status).phrase if fault.status in set(HTTPStatus) else "Error"
    text = f"<!doctype html>\n<title>{fault.status} {phrase}</title>\n<h1>{phrase}</h1>\n"
    return ErrorAnswer(fault.status, HTML, f"{text}<p>{html.escape(fault.message)}</p>\n".encode())


def unknown(fault: Fault, request_id: str) -> ErrorAnswer:
    """The answer for paths and methods that do not exist. Other faults outside of POST / have Panglot's own form."""
    return page(fault) if fault.status in (404, 405) else neutral_error(fault, request_id)
