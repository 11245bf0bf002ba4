"""Azure ML: POST and GET /score, GET / and GET /swagger.json of azmlinfsrv."""

from __future__ import annotations

import json

from starlette.requests import Request
from starlette.responses import Response

from panglot.dialects.azureml import swagger
from panglot.engine import interface as states
from panglot.engine.call import Fault
from panglot.packages.package import Package
from panglot.settings import Settings
from panglot.web.contract import INFER, PUBLIC, Contract, ErrorAnswer, ErrorWriter, InferRoute, Page
from panglot.web.models import Model

JSON = b"application/json"
SCORE = "/score"
NOT_FOUND = (
    "The requested URL was not found on the server. "
    "If you entered the URL manually please check your spelling and try again."
)
MESSAGES = {
    "not_found": NOT_FOUND,
    "method_not_allowed": "The method is not allowed for the requested URL.",
    "worker_died": "An unexpected error occurred in scoring script. Check the logs for more info.",
    "script_error": "An unexpected error occurred in scoring script. Check the logs for more info.",
    "bad_result": "An unexpected internal error occurred. Check the logs for more info.",
    "internal_error": "An unexpected internal error occurred. Check the logs for more info.",
}
"""The platform's sentences for faults, by their code."""
OF_SCRIPT = frozenset({"timeout", "worker_died", "script_error"})
"""Codes of faults for which `run()` is to blame."""
BEFORE_ROUTES = frozenset({"not_found", "method_not_allowed"})
"""Codes of faults that the platform's server answers before a route of its own, which would add its version."""


def contract(package: Package, settings: Settings) -> Contract:
    """The routes of the platform's server. A script that takes raw HTTP answers OPTIONS itself."""
    error = error_writer(package, settings)
    pages = [Page("/", PUBLIC, health, unless="text/html"), Page("/swagger.json", INFER, swagger.page)]
    methods: tuple[str, ...] = ("POST", "GET")
    if package.options["raw"]:
        methods = ("POST", "GET", "OPTIONS")
    else:
        pages.append(Page(SCORE, PUBLIC, options, methods=("OPTIONS",)))
    routes = (InferRoute(SCORE, SCORE, methods=methods, whole_head=True),)
    return Contract(routes=routes, error=error, pages=tuple(pages), unknown=error)


def error_writer(package: Package, settings: Settings) -> ErrorWriter:
    """The function that writes a fault as the platform's server does; a timeout names the limit of these settings."""
    milliseconds = round(settings.timeout * 1000)
    version = str(package.options["server_version"])
    about = (b"x-ms-server-version: " + version.encode(),) if version else ()

    def error(fault: Fault, request_id: str) -> ErrorAnswer:
        """A fault in the only form that the platform's server has, `message`."""
        status, message = fault.status, MESSAGES.get(fault.code, fault.message)
        if fault.code == "timeout":
            status, message = 500, f"Scoring timeout after {milliseconds} ms"
        failed = b"x-ms-run-function-failed: " + (b"True" if fault.code in OF_SCRIPT else b"False")
        headers = (failed, *(() if fault.code in BEFORE_ROUTES else about))
        return ErrorAnswer(status, JSON, json.dumps({"message": message}).encode(), headers)

    return error


# Pages


def health(model: Model, request: Request) -> Response:
    """The answer to the platform's probes. The platform's own server does not listen before the script is loaded."""
    if model.engine.state in states.SERVING:
        return Response("Healthy", headers=swagger.version_header(model), media_type="text/html")
    body = json.dumps({"message": "the script is not loaded"})
    return Response(body, 503, {"retry-after": "2"}, "application/json")


def options(model: Model, request: Request) -> Response:
    return Response(
        b"", headers={**swagger.version_header(model), "x-ms-run-function-failed": "False"}, media_type="text/html"
    )
