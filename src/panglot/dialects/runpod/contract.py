"""The HTTP contract of RunPod: /run, /runsync, and the pages of a job.

The server of the platform's SDK has short paths. The hosted API has the same paths behind `/v2/ENDPOINT`. Every request
is a job of the server's store. The worker answers with `{"output": ...}` or `{"error": ...}`; `views` adds the rest.
"""

from __future__ import annotations

import json
from typing import Any

from panglot.dialects.runpod import pages, views
from panglot.engine.call import Fault
from panglot.jobs.job import Webhook
from panglot.packages.package import Package
from panglot.settings import Settings
from panglot.web.contract import (
    ADMIN,
    INFER,
    Contract,
    ErrorAnswer,
    InferRoute,
    Page,
    RouteRefused,
    TokenForm,
)
from panglot.web.job_contract import JobOptions, JobRequest, JobRoute

JSON = b"application/json"
HOSTED = "/v2/{endpoint}"
"""The beginning of the hosted API's paths. Every name of an endpoint is right here: only the gateway knows them."""
FIELDS = ("input", "policy", "webhook")
WAIT, LEAST_WAIT, MOST_WAIT = 90.0, 1.0, 300.0
"""Seconds that /runsync waits for the end of a job: without `?wait=`, and the least and the most of that."""
RETAIN, RETAIN_SYNC, RETAIN_ANSWERED = 1800.0, 60.0, 0.0
"""Seconds that a job is stored after its end: of /run, of /runsync, and of /runsync where the client has the answer."""
DAY, WEEK = 86400.0, 7 * 86400.0
USUAL_SYNC = JobOptions(wait=WAIT, attached=True, lifetime=DAY, retain=RETAIN_SYNC, retain_answered=RETAIN_ANSWERED)
"""How a request of /runsync becomes a job, where it has neither a policy nor a webhook."""


def contract(package: Package, settings: Settings) -> Contract:
    """The routes of both servers, and the path for real-time requests where the platform's variable names it."""
    routes, shown = [], []
    for start in ("", HOSTED):
        routes += [
            InferRoute(f"{start}/runsync", "/runsync", target="/runsync", job=_job_route(waits=True)),
            InferRoute(f"{start}/run", "/run", target="/run", job=_job_route(waits=False)),
        ]
        shown += [
            Page(f"{start}/status/{{id}}", INFER, pages.status, methods=("GET", "POST") if start else ("POST",)),
            Page(f"{start}/stream/{{id}}", INFER, pages.stream, methods=("GET", "POST")),
            Page(f"{start}/cancel/{{id}}", INFER, pages.cancel, methods=("POST",)),
            Page(f"{start}/retry/{{id}}", INFER, pages.retry, methods=("POST",)),
            Page(f"{start}/health", INFER, pages.health),
            Page(f"{start}/purge-queue", ADMIN, pages.purge_queue, methods=("POST",)),
        ]
    # Only names that end as ids of jobs do: elsewhere `/status/NAME` is Panglot's own page about a request.
    shown.append(Page(f"/status/{{id}}{views.SUFFIX}", INFER, pages.status))
    if package.options.get("endpoint"):
        routes.append(InferRoute(f"/{package.options['endpoint']}/realtime", "/realtime", target="/realtime"))
    return Contract(routes=tuple(routes), error=error, pages=tuple(shown), unknown=unknown, token_forms=(TokenForm(),))


# Jobs


def _job_route(waits: bool) -> JobRoute:
    return JobRoute(
        always=True,
        fields=FIELDS,
        options=_sync_options if waits else _options,
        usual=USUAL_SYNC if waits else None,
        unusual=("policy", "webhook"),
        lifetime_ends_run=True,
        accepted=views.accepted,
        ended=views.ended,
        webhook=lambda state, event, answer: views.body(state, answer),
    )


def _options(request: JobRequest) -> JobOptions:
    """How a request of /run becomes a job. Raises RouteRefused."""
    if "input" not in request.fields:
        raise RouteRefused(_missing_input())
    return _with_policy(request, retain=RETAIN)


def _sync_options(request: JobRequest) -> JobOptions:
    """How a request of /runsync becomes a job. The worker refuses a body without input. Raises RouteRefused."""
    if request.respond_async:
        # The client asks for what /run does.
        return _with_policy(request, retain=RETAIN, wait=min(request.wait or 0.0, WAIT))
    given = request.query.get("wait", "")
    # Not `int`: Python refuses to read very long numbers.
    wait = min(max(float(given) / 1000, LEAST_WAIT), MOST_WAIT) if given.isdecimal() else WAIT
    # A client that leaves before the answer does not know the job's id: the job ends with it, unless a key names it.
    attached = not request.fields.get("webhook") and "idempotency-key" not in request.headers
    return _with_policy(request, retain=RETAIN_SYNC, retain_answered=RETAIN_ANSWERED, wait=wait, attached=attached)


def _with_policy(request: JobRequest, **options: Any) -> JobOptions:
    policy = request.fields.get("policy")
    limits = policy if isinstance(policy, dict) else {}
    url = request.fields.get("webhook")
    return JobOptions(
        **{"wait": 0.0, **options},
        lifetime=_seconds(limits, "ttl", DAY),
        run_timeout=_seconds(limits, "executionTimeout", 0.0),
        webhook=Webhook(url) if isinstance(url, str) and url else None,
    )


def _seconds(policy: dict[str, Any], name: str, otherwise: float) -> float:
    """A time of the policy, which is in milliseconds. Raises RouteRefused."""
    value = policy.get(name)
    if value is None:
        return otherwise
    if type(value) not in (int, float) or not value > 0:
        message = f"policy.{name} is a number of milliseconds above 0"
        raise RouteRefused(Fault(400, "bad_policy", message))
    return min(float(value) / 1000, WEEK)


# Errors


def _missing_input() -> Fault:
    """The refusal of the SDK's server, in the words of FastAPI."""
    detail = [{"type": "missing", "loc": ["body", "input"], "msg": "Field required", "input": {}}]
    return Fault(422, "missing_input", "the body is a JSON object with the field input", details={"detail": detail})


def error(fault: Fault, request_id: str) -> ErrorAnswer:
    """A fault in the platform's form. A fault that ends a job is shown by its sentence, in the job."""
    content = {"detail": fault.details["detail"]} if fault.code == "missing_input" and fault.details else None
    return ErrorAnswer(fault.status, JSON, _json(content or {"error": fault.message}))


def unknown(fault: Fault, request_id: str) -> ErrorAnswer:
    phrases: dict[int, str] = {404: "Not Found", 405: "Method Not Allowed"}
    phrase = phrases.get(fault.status)
    return ErrorAnswer(fault.status, JSON, _json({"detail": phrase} if phrase else {"error": fault.message}))


def _json(value: Any) -> bytes:
    # A script's message may have lone surrogates, which UTF-8 cannot encode.
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
