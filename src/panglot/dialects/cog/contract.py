"""The HTTP contract of Cog's server, and as much of Replicate's API as its clients need for one model."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from panglot.dialects.cog import pages, replicate, views
from panglot.engine.call import Fault
from panglot.errors import StartError
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
TRAININGS = "/trainings"
FIELDS = ("id", "input", "webhook", "webhook_events_filter")
OPENAPI = "application/vnd.oai.openapi+json"
"""The type that Panglot's own pages accept: they get Panglot's document, and other clients get Cog's."""
OTHER_ID = "other_id"
"""The code of a fault that concerns the id of a prediction."""
RETAIN, RETAIN_ANSWERED = 600.0, 60.0
"""Seconds that a prediction is stored after its end, and where its client has waited for the answer."""
HIDDEN = "**********"
EVENTS = {
    "start": ("started",), "output": ("output",), "logs": ("logs",),
    "completed": ("completed", "failed", "cancelled", "expired"),
}  # fmt: skip
"""The platform's events of webhooks, each with the events of Panglot that it stands for."""


def contract(package: Package, settings: Settings) -> Contract:
    """The routes of Cog's server, and below /v1 the routes of Replicate. Raises StartError."""
    address = str(getattr(settings, "upload_url", ""))
    if address and (urlsplit(address).scheme not in ("http", "https") or not urlsplit(address).hostname):
        raise StartError(f"upload_url {address!r} is no address", fix="--upload-url https://HOST/FOLDER/")
    throttle = float(package.options["throttle"])
    read, read_training = (
        functools.partial(read_fields, package.options[secrets], throttle) for secrets in ("secrets", "train_secrets")
    )
    created = functools.partial(created_options, read)
    job, training = (
        JobRoute(
            True, FIELDS, functools.partial(options, reading, kind), accepted=views.accepted, ended=views.ended,
            webhook=views.webhook,
        )
        for kind, reading in zip(views.KINDS, (read, read_training), strict=True)
    )  # fmt: skip
    created_job = JobRoute(
        True, FIELDS, created, accepted=replicate.accepted, ended=replicate.ended, webhook=replicate.webhook
    )
    # Most predictions have neither field. Then the front need not read their bodies to know that they are no jobs.
    usual = dataclasses.replace(job, usual=JobOptions(is_job=False), unusual=("id", "webhook"))
    routes = [
        InferRoute(PREDICTIONS, PREDICTIONS, job=usual),
        InferRoute(ONE, PREDICTIONS, methods=("PUT",), target=PREDICTIONS, job=job),
        *(
            InferRoute(path, "/v1/predictions", target=PREDICTIONS, job=created_job, error=replicate.error)
            for path in replicate.CREATING
        ),
        InferRoute(replicate.FILES, replicate.FILES, takes=("multipart/form-data",), error=replicate.error),
    ]
    shown = [
        Page("/", PUBLIC, pages.root, unless="text/html"),
        Page(pages.HEALTH, PUBLIC, pages.health_check),
        Page("/openapi.json", INFER, pages.openapi, unless=OPENAPI),
        Page(ONE + "/cancel", INFER, pages.cancel, methods=("POST",)),
        Page("/v1/predictions/{id}", INFER, replicate.show),
        Page("/v1/predictions/{id}/cancel", INFER, replicate.cancel, methods=("POST",)),
        Page("/v1/predictions/{id}/stream", INFER, replicate.stream),
        Page("/v1/models/{owner}/{name}", INFER, replicate.model_page),
        Page("/v1/models/{owner}/{name}/versions", INFER, replicate.versions_page),
        Page("/v1/models/{owner}/{name}/versions/{version}", INFER, replicate.version_page),
    ]
    if package.options["train"]:
        routes += [
            InferRoute(TRAININGS, TRAININGS, job=training),
            InferRoute(TRAININGS + "/{prediction_id}", TRAININGS, methods=("PUT",), target=TRAININGS, job=training),
        ]
        shown.append(Page(TRAININGS + "/{prediction_id}/cancel", INFER, pages.cancel_training, methods=("POST",)))
    return Contract(
        routes=tuple(routes), error=error, pages=tuple(shown), unknown=unknown, token_forms=(TokenForm("Token"),)
    )


# Jobs


class Given(NamedTuple):
    """The values that a request's fields give its job."""

    own: dict[str, Any]
    """The inputs as the dialect stores them."""
    webhook: Webhook | None


ReadFields = Callable[[Mapping[str, Any]], Given]


def read_fields(secrets: tuple[str, ...] | None, throttle: float, fields: Mapping[str, Any]) -> Given:
    return Given(_input(secrets, fields), _webhook(fields, throttle))


def options(read: ReadFields, kind: str, request: JobRequest) -> JobOptions:
    """How a request becomes a job: if it has an id, if it has a webhook, or if its client does not wait for the answer.

    All other predictions are ordinary calls, and so is every prediction whose client reads events. Raises
    RouteRefused.
    """
    name = request.path_values.get("prediction_id") or request.fields.get("id")
    given_own, webhook = read(request.fields)
    reads_events = "text/event-stream" in request.headers.get("accept", "")
    if reads_events or (not name and webhook is None and not request.respond_async):
        return JobOptions(is_job=False)
    given = request.fields.get("id")
    if given is not None and given != name:
        raise RouteRefused(Fault(422, OTHER_ID, "prediction ID must match the ID supplied in the URL"))
    if name and not isinstance(name, str):
        raise RouteRefused(Fault(422, OTHER_ID, "the id of a prediction is a text"))
    return JobOptions(
        wait=min(request.wait or 0.0, replicate.LONGEST_WAIT) if request.respond_async else FOREVER,
        # A client with an id can come again for the answer, or cancel the prediction by its id.
        attached=not name and not request.respond_async,
        key=views.key(name, kind) if name else None,
        any_request=True,
        retain=RETAIN,
        retain_answered=RETAIN_ANSWERED,
        webhook=webhook,
        own={"id": name or "", **given_own},
    )


def created_options(read: ReadFields, request: JobRequest) -> JobOptions:
    """How a request of Replicate's API becomes a job: always. `Prefer: wait` waits for its end. Raises RouteRefused."""
    wait = request.wait
    if wait is None and "wait" in request.headers.get("prefer", "").replace(" ", "").split(","):
        wait = replicate.LONGEST_WAIT
    given = read(request.fields)
    host, scheme = request.headers.get("host", ""), request.headers.get("x-forwarded-proto", "http")
    return JobOptions(
        wait=min(wait or 0.0, replicate.LONGEST_WAIT),
        retain=RETAIN,
        webhook=given.webhook,
        own={"base": f"{scheme}://{host}", **given.own},
    )


def _input(secrets: tuple[str, ...] | None, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs without secrets, for answers before the prediction has ended. Large ones are in its last answer alone.

    Where only running the script would tell which inputs are secrets, there are none.
    """
    given = fields.get("input")
    if given is TOO_LONG or not isinstance(given, dict) or secrets is None:
        return {}
    return {"input": {name: HIDDEN if name in secrets and value else value for name, value in given.items()}}


def _webhook(fields: Mapping[str, Any], throttle: float) -> Webhook | None:
    """The webhook of a request, with the events that it chooses; without a choice, with all events of the platform."""
    url, events = fields.get("webhook"), fields.get("webhook_events_filter")
    if not isinstance(url, str) or not url:
        return None
    wanted = events if isinstance(events, list) and events else list(EVENTS)
    chosen = tuple(event for name, ours in EVENTS.items() if name in wanted for event in ours)
    return Webhook(url, chosen, throttle) if chosen else None


# Errors


def error(fault: Fault, request_id: str) -> ErrorAnswer:
    """A fault in the form of a failed prediction: a crash, a deadline, a full queue."""
    content: dict[str, Any] = {"error": fault.message, "status": "failed"}
    if fault.code == OTHER_ID:
        content = {"detail": [{"loc": ["body", "id"], "msg": fault.message, "type": "value_error"}]}
    return ErrorAnswer(fault.status, JSON, json.dumps(content, ensure_ascii=False).encode("utf-8", "replace"))


def unknown(fault: Fault, request_id: str) -> ErrorAnswer:
    phrases: dict[int, str] = {404: "Not Found", 405: "Method Not Allowed"}
    content = {"detail": phrases.get(fault.status, fault.message)}
    return ErrorAnswer(fault.status, JSON, json.dumps(content, ensure_ascii=False).encode("utf-8", "replace"))
