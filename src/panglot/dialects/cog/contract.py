"""The HTTP contract of Cog's server, and as much of Replicate's API as its clients need for one model."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from typing import Any

from panglot.dialects.cog import pages, replicate, views
from panglot.engine.call import Fault
from panglot.jobs.job import Webhook
from panglot.packages.package import Package
from panglot.settings import Settings
from panglot.web.contract import (
    INFER,
    PUBLIC,
    Contract,
    ErrorAnswer,
    InferRoute,
    Page,
    RouteRefused,
    TokenForm,
)
from panglot.web.job_contract import FOREVER, JobOptions, JobRequest, JobRoute
from panglot.web.json_fields import TOO_LONG

JSON = b"application/json"
PREDICTIONS = "/predictions"
ONE = "/predictions/{prediction_id}"
FIELDS = ("id", "input", "webhook", "webhook_events_filter")
OPENAPI = "application/vnd.oai.openapi+json"
"""What Panglot's own pages accept: they get the document that is there on every server."""
OTHER_ID = "other_id"
"""The code of a fault that concerns the id of a prediction."""
RETAIN, RETAIN_ANSWERED = 600.0, 60.0
"""Seconds that a prediction is stored after its end, and where its client has waited for the answer."""
HIDDEN = "**********"
ENDS = ("completed", "failed", "cancelled", "expired")


def contract(package: Package, settings: Settings) -> Contract:
    """The routes of Cog's server; those of Replicate below /v1."""
    shown_input = functools.partial(_input, package.options["secrets"])
    chosen, created = functools.partial(options, shown_input), functools.partial(created_options, shown_input)
    job = JobRoute(True, FIELDS, chosen, views.accepted, views.ended, views.webhook)
    created_job = JobRoute(True, FIELDS, created, replicate.accepted, replicate.ended, replicate.webhook)
    routes = [
        InferRoute(PREDICTIONS, PREDICTIONS, job=job),
        InferRoute(ONE, PREDICTIONS, methods=("PUT",), target=PREDICTIONS, job=job),
        InferRoute("/v1/predictions", "/v1/predictions", target=PREDICTIONS, job=created_job),
        InferRoute("/v1/models/{owner}/{name}/predictions", "/v1/predictions", target=PREDICTIONS, job=created_job),
    ]
    shown = [
        Page("/", PUBLIC, pages.root, unless="text/html"),
        Page("/openapi.json", INFER, pages.openapi, unless=OPENAPI),
        Page(ONE + "/cancel", INFER, pages.cancel, methods=("POST",)),
        Page("/v1/predictions/{id}", INFER, replicate.show),
        Page("/v1/predictions/{id}/cancel", INFER, replicate.cancel, methods=("POST",)),
        Page("/v1/predictions/{id}/stream", INFER, replicate.stream),
        Page("/v1/models/{owner}/{name}", INFER, replicate.model_page),
        Page("/v1/models/{owner}/{name}/versions/{version}", INFER, replicate.version_page),
    ]
    if package.options["healthcheck"]:
        routes.append(InferRoute("/health-check", "/health-check", PUBLIC, ("GET",), without_body=True))
    else:
        shown.append(Page("/health-check", PUBLIC, pages.health_check))
    return Contract(
        routes=tuple(routes), error=error, pages=tuple(shown), unknown=unknown, token_forms=(TokenForm("Token"),)
    )


# Jobs


ShownInput = Callable[[Mapping[str, Any]], dict[str, Any]]
"""Given the fields of a request, what the dialect stores of its inputs."""


def options(shown_input: ShownInput, request: JobRequest) -> JobOptions:
    """A prediction is a job where it has an id, by which it can be cancelled; where its client does not wait; and
    where somebody is called back. All others, and those whose events are read, are ordinary calls. Raises
    RouteRefused."""
    name = request.path_values.get("prediction_id") or request.fields.get("id")
    webhook = _webhook(request.fields)
    reads_events = "text/event-stream" in request.headers.get("accept", "")
    if reads_events or (not name and webhook is None and not request.respond_async):
        return JobOptions(is_job=False)
    given = request.fields.get("id")
    if given is not None and given != name:
        raise RouteRefused(Fault(422, OTHER_ID, "prediction ID must match the ID supplied in the URL"))
    if name and not isinstance(name, str):
        raise RouteRefused(Fault(422, OTHER_ID, "the id of a prediction is a text"))
    return JobOptions(
        wait=0.0 if request.respond_async else FOREVER,
        # A client with an id can come again for the answer, or cancel the prediction by its id.
        attached=not name and not request.respond_async,
        key=views.key(name) if name else None,
        any_request=True,
        retain=RETAIN,
        retain_answered=RETAIN_ANSWERED,
        webhook=webhook,
        own={"id": name or "", **shown_input(request.fields)},
    )


def created_options(shown_input: ShownInput, request: JobRequest) -> JobOptions:
    """A prediction of Replicate's API is always a job; `Prefer: wait` waits for its end. Raises RouteRefused."""
    wait = request.wait
    if wait is None and "wait" in request.headers.get("prefer", "").replace(" ", "").split(","):
        wait = replicate.LONGEST_WAIT
    host, scheme = request.headers.get("host", ""), request.headers.get("x-forwarded-proto", "http")
    return JobOptions(
        wait=min(wait or 0.0, replicate.LONGEST_WAIT),
        retain=RETAIN,
        webhook=_webhook(request.fields),
        own={"base": f"{scheme}://{host}", **shown_input(request.fields)},
    )


def _input(secrets: tuple[str, ...] | None, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs, which answers before the end show, without secrets; large ones are shown by the answer itself alone.

    Where nobody knows before the script runs which ones are secrets, none is shown.
    """
    given = fields.get("input")
    if given is TOO_LONG or not isinstance(given, dict) or secrets is None:
        return {}
    return {"input": {name: HIDDEN if name in secrets and value else value for name, value in given.items()}}


def _webhook(fields: Mapping[str, Any]) -> Webhook | None:
    """Whom to call back, and when: the platform's `start` and `completed`."""
    url, events = fields.get("webhook"), fields.get("webhook_events_filter")
    if not isinstance(url, str) or not url:
        return None
    wanted = events if isinstance(events, list) and events else ["start", "completed"]
    told = (("started",) if "start" in wanted else ()) + (ENDS if "completed" in wanted else ())
    return Webhook(url, told) if told else None


# Errors


def error(fault: Fault, request_id: str) -> ErrorAnswer:
    """A fault in the form of a failed prediction: a crash, a deadline, a full queue."""
    told: dict[str, Any] = {"error": fault.message, "status": "failed"}
    if fault.code == OTHER_ID:
        told = {"detail": [{"loc": ["body", "id"], "msg": fault.message, "type": "value_error"}]}
    return ErrorAnswer(fault.status, JSON, json.dumps(told, ensure_ascii=False).encode("utf-8", "replace"))


def unknown(fault: Fault, request_id: str) -> ErrorAnswer:
    phrases: dict[int, str] = {404: "Not Found", 405: "Method Not Allowed"}
    told = {"detail": phrases.get(fault.status, fault.message)}
    return ErrorAnswer(fault.status, JSON, json.dumps(told, ensure_ascii=False).encode("utf-8", "replace"))
