"""Pages of a job: its state, its stream, cancelling it, running it again; and the endpoint's health.

On the server of the SDK, a POST to a short path runs the job, and the answer comes at its end. All other requests are
answered at once, as by the hosted API.
"""

from __future__ import annotations

import json
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from panglot.dialects.runpod import views
from panglot.engine.call import Fault
from panglot.web.contract import RouteRefused
from panglot.web.job_contract import ClientJobs, JobState, ModelJobs
from panglot.web.models import Model

LONGEST_WAIT = 300.0
"""Seconds that the short paths wait for the end of a job."""
NOT_FOUND = "Job ID not found"
NO_STREAM = "Stream not supported, handler must be a generator."


async def status(model: Model, request: Request) -> Response:
    """A job, with its output, its error or its progress."""
    jobs, state = _own(model, request), await _state(model, request)
    if state is None:
        return _not_found(request)
    if _waits(request):
        state = await jobs.wait(state.job.id, LONGEST_WAIT) or state
    answer = await jobs.answer(state.job.id) if state.job.is_ended else None
    return _answer(views.body(state, answer))


async def stream(model: Model, request: Request) -> Response:
    """The parts that a generator has yielded since the last request; on a short path all parts, after its end."""
    jobs, state = _own(model, request), await _state(model, request)
    if state is None:
        return _not_found(request)
    if not model.api.get("streams"):
        return _json({"id": views.shown_id(state.job), "status": "FAILED", "error": NO_STREAM})
    waits = _waits(request)
    if waits:
        state = await jobs.wait(state.job.id, LONGEST_WAIT) or state
    # The parts after the state: a client stops at a job that has ended and has no new parts. In the other order, it
    # would miss the parts that came in between.
    parts = await (jobs.parts(state.job.id) if waits else jobs.new_parts(state.job.id))
    yields = b",".join(part for part in parts if part.startswith(views.OUTPUT))
    content = views.fields(state)
    if views.status(state.job) in ("FAILED", "TIMED_OUT"):
        failure = json.loads(views.result(state, await jobs.answer(state.job.id)))
        content["error"] = failure.get("error")
    return _answer(views.joined(content, b'{"stream":[' + yields + b"]}"))


async def cancel(model: Model, request: Request) -> Response:
    """Cancel a job. A job that has ended stays as it is."""
    state = await _state(model, request)
    cancelled = await _own(model, request).cancel(state.job.id) if state is not None else None
    if cancelled is None:
        return _not_found(request)
    return _json({"id": views.shown_id(cancelled.job), "status": views.status(cancelled.job)})


async def retry(model: Model, request: Request) -> Response:
    """Queue a failed job once more, with the same id and input."""
    state = await _state(model, request)
    if state is None:
        return _not_found(request)
    again = await _own(model, request).retry(state.job.id)
    if again is None:
        return _json({"error": f"the job is {views.status(state.job)}: only a job that failed runs again"}, 400)
    return _json({"id": views.shown_id(again.job), "status": views.status(again.job)})


async def health(model: Model, request: Request) -> Response:
    """How many jobs are in each state, and how many workers are ready, idle or running."""
    counts = await _jobs(model).counts()
    workers = await model.workers()
    ready = [worker for worker in workers if worker["state"] == "ready"]
    running = [worker for worker in ready if worker["in_flight"]]
    content = {
        "jobs": {
            "completed": counts["done"],
            "failed": counts["failed"] + counts["expired"] + counts["interrupted"],
            "inProgress": counts["running"],
            "inQueue": counts["queued"],
            "retried": 0,
        },
        "workers": {
            "idle": len(ready) - len(running),
            "initializing": sum(worker["state"] in ("starting", "loading") for worker in workers),
            "ready": len(ready),
            "running": len(running),
            "throttled": 0,
        },
    }
    return _json(content)


async def purge_queue(model: Model, request: Request) -> Response:
    """Cancel all jobs that wait."""
    return _json({"removed": await _own(model, request).purge(), "status": "completed"})


# Helpers


def _jobs(model: Model) -> ModelJobs:
    if model.jobs is None:
        raise RouteRefused(Fault(503, "jobs_unavailable", "this server stores no jobs", 10))
    return model.jobs


def _own(model: Model, request: Request) -> ClientJobs:
    """The jobs that the client of a request may see."""
    return _jobs(model).of(request)


async def _state(model: Model, request: Request) -> JobState | None:
    """The job that a path names; None where it is not there, or belongs to another client."""
    name = views.stored_id(request.path_params["id"])
    return await _own(model, request).find(name) if name else None


def _is_hosted(request: Request) -> bool:
    return "endpoint" in request.path_params


def _waits(request: Request) -> bool:
    return request.method == "POST" and not _is_hosted(request)


def _not_found(request: Request) -> Response:
    """The SDK's server answers 200 here, the hosted API 404."""
    content = {"id": request.path_params["id"], "status": "FAILED", "error": NOT_FOUND}
    return _json(content, 404 if _is_hosted(request) else 200)


def _json(value: Any, code: int = 200) -> Response:
    return _answer(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace"), code)


def _answer(body: bytes, code: int = 200) -> Response:
    return Response(body, code, media_type="application/json")
