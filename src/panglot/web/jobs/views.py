"""A job as clients see it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import orjson

from panglot.engine.call import Fault
from panglot.jobs.job import CANCELLED, EXPIRED, INTERRUPTED, Job
from panglot.packages.model_folder import FIRST_VERSION
from panglot.web.contract import InferRoute
from panglot.web.job_contract import JobState
from panglot.web.models import Model


def model_key(model: Model) -> str:
    """The name under which the jobs of a model are stored."""
    return model.name if model.version == FIRST_VERSION else f"{model.name}/{model.version}"


def route_of(models: Iterable[Model], job: Job) -> InferRoute | None:
    """The route by which a job came; None where its model is no longer served."""
    routes = (route for model in models if model_key(model) == job.model for route in model.contract.routes)
    return next((route for route in routes if route.path == job.route), None)


def own_of(job: Job) -> Mapping[str, Any]:
    """The values that the dialect stored with a job."""
    stored: dict[str, Any] = json.loads(job.own) if job.own else {}
    return stored


def moment(seconds: float | None) -> str | None:
    """A time as JSON has it."""
    # A lifetime may be so long that its end is no date.
    if seconds is None or seconds > 1e11:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def view(state: JobState) -> dict[str, Any]:
    """The job as JSON."""
    job, progress = state.job, state.progress
    shown: dict[str, Any] = {
        "id": job.id,
        "state": job.state_name,
        "durable": state.durable,
        "model": job.model,
        "route": job.route,
        "attempts": job.attempts,
        "accepted": moment(job.accepted),
        "started": moment(job.started),
        "ended": moment(job.ended),
        "expires": moment(job.due if job.is_ended else job.expires),
        "progress": None if progress is None else {"progress": progress.fraction, "text": progress.text},
        "parts": state.parts,
        "status": job.status,
        "error": job.error,
        "result": f"/jobs/{job.id}/result" if job.is_ended and job.status is not None else None,
        "events": f"/jobs/{job.id}/events",
    }
    return shown


def to_json(state: JobState) -> bytes:
    return orjson.dumps(view(state))


def no_answer(job: Job) -> Fault:
    """Why a job that has ended has no answer."""
    if job.state == CANCELLED:
        return Fault(410, "job_cancelled", "the job was cancelled")
    if job.state == EXPIRED:
        return Fault(410, "job_expired", "the job waited longer than it was allowed to")
    error = job.error
    if error is not None:
        return Fault(503 if job.state == INTERRUPTED else 500, str(error["code"]), str(error["message"]))
    return Fault(410, "job_removed", "the answer of the job was removed")
