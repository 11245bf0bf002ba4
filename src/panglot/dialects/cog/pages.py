"""Pages of Cog's server: its paths, its health, its document, and cancelling."""

from __future__ import annotations

import json
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from panglot.dialects.cog import views
from panglot.engine import interface as states
from panglot.engine.call import Fault
from panglot.web import questions
from panglot.web.contract import RouteRefused
from panglot.web.job_contract import ClientJobs, JobState
from panglot.web.models import Model
from panglot_worker.line import wire

VERSION = "0.23.1"
"""The version of Cog that is reproduced here."""
HEALTH = "/health-check"
READY, BUSY, UNHEALTHY = "READY", "BUSY", "UNHEALTHY"
PATIENCE = 5.0
"""Seconds that the script's own check may take."""
TOO_SLOW = "Healthcheck failed: user-defined healthcheck timed out after 5.0 seconds"


def root(model: Model, request: Request) -> Response:
    """All paths, as the original lists them, but for /shutdown: no request ends this server."""
    prediction = "/predictions/{prediction_id}"
    training = "/trainings/{training_id}"
    trains = {
        "trainings_cancel_url": training + "/cancel", "trainings_idempotent_url": training,
        "trainings_url": "/trainings",
    }  # fmt: skip
    return json_answer(
        {
            "cog_version": VERSION,
            "docs_url": "/docs",
            "healthcheck_url": "/health-check",
            "openapi_url": "/openapi.json",
            "predictions_cancel_url": prediction + "/cancel",
            "predictions_idempotent_url": prediction,
            "predictions_url": "/predictions",
            **(trains if model.package.options["train"] else {}),
        }
    )


async def health_check(model: Model, request: Request) -> Response:
    """Always 200: the status is in the body. While predictions run, the script's own check is not called."""
    status, error = await _status(model), ""
    if status == READY and platform(model).get("healthcheck"):
        status, error = await _own_status(model)
    setup = platform(model).get("setup") or {"started_at": None, "status": "starting", "logs": ""}
    content = {"user_healthcheck_error": error} if error else {}
    return json_answer({"status": status, "setup": setup, "version": {"cog": VERSION}, **content})


async def _status(model: Model) -> str:
    """The status without a call of the script. A model that sleeps is READY: the first prediction wakes it."""
    named = {states.READY: READY, states.ASLEEP: READY, states.DRAINING: "DEFUNCT"}
    status = named.get(model.engine.state, "STARTING")
    ready = [worker for worker in await model.workers() if worker["state"] == "ready"]
    slots = int(platform(model).get("slots") or 1)
    return BUSY if status == READY and ready and all(worker["in_flight"] >= slots for worker in ready) else status


async def _own_status(model: Model) -> tuple[str, str]:
    """The status by the script's own check, and the reason where that fails."""
    # A question would wake the model: health checks come all the time.
    if model.engine.state == states.ASLEEP:
        return READY, ""
    try:
        content = json.loads(await questions.ask(model, wire.Head(route=HEALTH.encode(), method=b"GET"), PATIENCE))
    except TimeoutError:
        # The check itself is too slow: a worker was free when the question was sent.
        return UNHEALTHY, TOO_SLOW
    except RouteRefused as refused:
        # Looked up again: a prediction, or the end of the worker, may have come in between.
        status = await _status(model)
        return (status, "") if status != READY else (UNHEALTHY, f"Healthcheck failed: {refused.fault.message}")
    return str(content["status"]), str(content.get("user_healthcheck_error") or "")


def openapi(model: Model, request: Request) -> Response:
    document = platform(model).get("openapi")
    if document is None:
        return json_answer({"error": "OpenAPI schema not available"}, 503)
    return json_answer(document)


async def cancel(model: Model, request: Request) -> Response:
    """Cancel a prediction, by the id that its client has chosen or by the id of its job."""
    return await _cancelled(model, request, views.PREDICTION)


async def cancel_training(model: Model, request: Request) -> Response:
    return await _cancelled(model, request, views.TRAINING)


async def _cancelled(model: Model, request: Request, kind: str) -> Response:
    jobs = own_jobs(model, request)
    state = await find(jobs, request.path_params["prediction_id"], kind)
    if state is None:
        return json_answer({}, 404)
    await jobs.cancel(state.job.id)
    return json_answer({})


def own_jobs(model: Model, request: Request) -> ClientJobs:
    """The predictions that the client of a request may see. Raises RouteRefused."""
    if model.jobs is None:
        raise RouteRefused(Fault(503, "jobs_unavailable", "this server stores no jobs", 10))
    return model.jobs.of(request)


async def find(jobs: ClientJobs, name: str, kind: str = views.PREDICTION) -> JobState | None:
    """The prediction or training of a name: an id that its client has chosen, or the id of its job."""
    return await jobs.by_key(views.key(name, kind)) or await jobs.find(name)


def platform(model: Model) -> dict[str, Any]:
    """What the worker's half of the dialect has sent for this half."""
    return dict(model.api.get("platform") or {})


def json_answer(value: Any, status: int = 200) -> Response:
    return Response(views.to_json(value), status, media_type="application/json")
