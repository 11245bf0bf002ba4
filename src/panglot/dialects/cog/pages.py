"""Pages of Cog's server: what it is, its health, its document, and cancelling."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from panglot.dialects.cog import views
from panglot.engine import interface as states
from panglot.engine.call import Fault
from panglot.web.contract import RouteRefused
from panglot.web.job_contract import ClientJobs, JobState
from panglot.web.models import Model

VERSION = "0.23.1"
"""The version of Cog whose behaviour this is."""


def root(model: Model, request: Request) -> Response:
    """Where everything is, as the original tells it; the server is not shut down by a request."""
    prediction = "/predictions/{prediction_id}"
    return json_answer(
        {
            "cog_version": VERSION,
            "docs_url": "/docs",
            "healthcheck_url": "/health-check",
            "openapi_url": "/openapi.json",
            "predictions_cancel_url": prediction + "/cancel",
            "predictions_idempotent_url": prediction,
            "predictions_url": "/predictions",
        }
    )


def health_check(model: Model, request: Request) -> Response:
    """Always 200: the status is in the body."""
    workers = model.engine.workers()
    ready = [worker for worker in workers if worker["state"] == "ready"]
    # One that sleeps takes predictions as well: the first one wakes it.
    named = {states.READY: "READY", states.ASLEEP: "READY", states.DRAINING: "DEFUNCT"}
    status = named.get(model.engine.state, "STARTING")
    if status == "READY" and ready and all(worker["in_flight"] for worker in ready):
        status = "BUSY"
    setup = platform(model).get("setup") or {"started_at": None, "status": "starting", "logs": ""}
    return json_answer({"status": status, "setup": setup, "version": {"cog": VERSION}})


def openapi(model: Model, request: Request) -> Response:
    document = platform(model).get("openapi")
    if document is None:
        return json_answer({"error": "OpenAPI schema not available"}, 503)
    return json_answer(document)


async def cancel(model: Model, request: Request) -> Response:
    """Cancel a prediction by the id that its client has chosen, or that it was given."""
    jobs = own_jobs(model, request)
    state = await find(jobs, request.path_params["prediction_id"])
    if state is None:
        return json_answer({}, 404)
    await jobs.cancel(state.job.id)
    return json_answer({})


def own_jobs(model: Model, request: Request) -> ClientJobs:
    """The predictions that the client of a request may see. Raises RouteRefused."""
    if model.jobs is None:
        raise RouteRefused(Fault(503, "jobs_unavailable", "this server stores no jobs", 10))
    return model.jobs.of(request)


async def find(jobs: ClientJobs, name: str) -> JobState | None:
    """The prediction of a name: of the client's choice, or the id of the job."""
    return await jobs.by_key(views.key(name)) or await jobs.find(name)


def platform(model: Model) -> dict[str, Any]:
    """What the worker's half says for this one."""
    return dict(model.api.get("platform") or {})


def json_answer(value: Any, status: int = 200) -> Response:
    return Response(views.to_json(value), status, media_type="application/json")
