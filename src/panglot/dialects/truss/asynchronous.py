"""Asynchronous inference of the hosted platform: `/async_predict` makes a job, `/async_request/ID` shows it."""

from __future__ import annotations

import json
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from panglot.engine.call import Fault
from panglot.jobs.job import END_EVENTS
from panglot.web.contract import JOBS, InferRoute, Page, RouteRefused
from panglot.web.job_contract import (
    ClientJobs,
    JobOptions,
    JobRequest,
    JobRoute,
    JobState,
    PlatformAnswer,
    StoredAnswer,
    Webhook,
)
from panglot.web.jobs.views import moment
from panglot.web.models import Model

TARGET = "/async_predict"
"""The route that the worker gets: there, the input is the field `model_input`."""
PATHS = (
    "/async_predict", "/production/async_predict", "/development/async_predict",
    "/deployment/{deployment}/async_predict", "/environments/{environment}/async_predict",
)  # fmt: skip
REQUEST = "/async_request/{request}"
INPUT, WEBHOOK, LONGEST = "model_input", "webhook_endpoint", "max_time_in_queue_seconds"
MOST_SECONDS = 259200
"""The platform lets a request wait for 72 hours at most."""
STATES = {
    "queued": "QUEUED", "running": "IN_PROGRESS", "done": "SUCCEEDED", "failed": "FAILED", "expired": "EXPIRED",
    "cancelled": "CANCELED", "interrupted": "FAILED",
}  # fmt: skip
JSON = b"application/json"


def routes(whole_head: bool) -> tuple[InferRoute, ...]:
    job = JobRoute(always=True, fields=(INPUT, WEBHOOK, LONGEST), options=options, accepted=accepted, webhook=notice)
    return tuple(InferRoute(path, "async_predict", target=TARGET, whole_head=whole_head, job=job) for path in PATHS)


def options(request: JobRequest) -> JobOptions:
    """How a request becomes a job, by the fields of its body. Raises RouteRefused."""
    fields = request.fields
    if INPUT not in fields:
        raise RouteRefused(Fault(400, "bad_request", 'the body must be {"model_input": ...}'))
    seconds, address = fields.get(LONGEST), fields.get(WEBHOOK)
    if seconds is not None and (type(seconds) is not int or not 1 <= seconds <= MOST_SECONDS):
        raise RouteRefused(Fault(400, "bad_request", f"{LONGEST} must be a whole number from 1 to {MOST_SECONDS}"))
    if address is not None and not isinstance(address, str):
        raise RouteRefused(Fault(400, "bad_request", f"{WEBHOOK} must be a text"))
    webhook = Webhook(address, tuple(dict.fromkeys(END_EVENTS.values()))) if address else None
    return JobOptions(lifetime=float(seconds) if seconds is not None else None, webhook=webhook)


def accepted(state: JobState) -> PlatformAnswer:
    return PlatformAnswer(201, JSON, json.dumps({"request_id": state.job.id}).encode())


def notice(state: JobState, event: str, answer: StoredAnswer | None) -> bytes:
    """The body of a webhook: the output, or the error."""
    job, data = state.job, None
    if answer is not None and answer.status < 400:
        try:
            data = json.loads(answer.body)
        except ValueError:
            data = answer.body.decode("utf-8", "replace")
    body = {
        "request_id": job.id,
        "model_id": job.model,
        "deployment_id": job.model,
        "type": "async_request_completed",
        "time": moment(job.ended),
        "data": data,
        "errors": _errors(state, answer),
    }
    return json.dumps(body).encode()


def _errors(state: JobState, answer: StoredAnswer | None) -> list[dict[str, Any]]:
    name = STATES[state.job.state_name]
    if name in ("QUEUED", "IN_PROGRESS", "SUCCEEDED"):
        return []
    code = {"EXPIRED": "MODEL_PREDICT_TIMEOUT", "CANCELED": "CANCELED"}.get(name, "MODEL_PREDICT_ERROR")
    said = answer.body[:1000].decode("utf-8", "replace") if answer is not None else name.lower()
    return [{"code": code, "message": said}]


# The page of a request


async def shown(model: Model, request: Request) -> Response:
    """GET: the state of the request. DELETE: cancel it, if it has not begun."""
    jobs, name = _jobs(model, request), request.path_params["request"]
    state = await jobs.find(name)
    if state is None:
        raise RouteRefused(Fault(404, "not_found", "there is no such request"))
    if request.method == "DELETE":
        waits = state.job.state_name == "queued"
        if waits:
            await jobs.cancel(name)
        message = "The request was canceled." if waits else "The request has begun, and is not canceled."
        return _answer({"request_id": name, "canceled": waits, "message": message})
    job = state.job
    answer = await jobs.answer(name) if job.is_ended else None
    return _answer({
        "request_id": name,
        "model_id": job.model,
        "deployment_id": job.model,
        "status": STATES[job.state_name],
        "created_at": moment(job.accepted),
        "status_at": moment(job.ended or job.started or job.accepted),
        "errors": _errors(state, answer),
    })  # fmt: skip


def _answer(value: dict[str, Any]) -> Response:
    return Response(json.dumps(value), media_type="application/json")


def _jobs(model: Model, request: Request) -> ClientJobs:
    if model.jobs is None:
        raise RouteRefused(Fault(503, "jobs_unavailable", "this server stores no jobs", 10))
    return model.jobs.of(request)


PAGE = Page(REQUEST, JOBS, shown, methods=("GET", "DELETE"))
