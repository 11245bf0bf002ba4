"""As much of Replicate's API as its clients need for one model: to create, poll, stream and cancel predictions."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from panglot.dialects.cog import pages, views
from panglot.engine.call import Fault
from panglot.jobs.job import Job
from panglot.web.contract import ErrorAnswer
from panglot.web.job_contract import ClientJobs, JobState, PlatformAnswer, StoredAnswer
from panglot.web.jobs.views import moment, own_of
from panglot.web.models import Model

LONGEST_WAIT = 60.0
JSON = b"application/json"
CREATING = (
    "/v1/predictions",
    "/v1/models/{owner}/{name}/predictions",
    "/v1/deployments/{owner}/{name}/predictions",
)
FILES = "/v1/files"
"""Replicate's client sends files there, and gets the addresses that it sends as inputs; the worker makes them."""


def _more(job: Job) -> dict[str, Any]:
    """The fields that a prediction of Replicate has, and one of Cog does not."""
    at = f"{own_of(job).get('base', '')}/v1/predictions/{job.id}"
    urls = {"get": at, "cancel": f"{at}/cancel", "stream": f"{at}/stream"}
    return {"model": job.model, "version": "1", "urls": urls, "data_removed": False}


def accepted(state: JobState) -> PlatformAnswer:
    """A prediction that has not ended is `starting` here: Replicate's client takes any other status for an end."""
    return PlatformAnswer(201, JSON, views.body(state, None, {**_more(state.job), "status": "starting"}))


def ended(state: JobState, answer: StoredAnswer | None) -> PlatformAnswer:
    """201 for every end, also for a failure. Inputs that were refused have their own status."""
    if answer is not None and 400 <= answer.status < 500 and state.job.error is None:
        return PlatformAnswer(answer.status, JSON, answer.body)
    return PlatformAnswer(201, JSON, views.body(state, answer, _more(state.job)))


def webhook(state: JobState, event: str, answer: StoredAnswer | None) -> bytes:
    return views.body(state, answer, {**_more(state.job), **views.so_far(state, answer)})


# Pages


async def show(model: Model, request: Request) -> Response:
    """A prediction as it is now, with its outputs so far."""
    jobs = pages.own_jobs(model, request)
    state = await pages.find(jobs, request.path_params["id"])
    if state is None:
        return _not_found()
    answer = await jobs.answer(state.job.id) if state.job.is_ended else None
    more = _more(state.job)
    if not state.job.is_ended and state.parts:
        more["output"] = [chunk for part in await jobs.parts(state.job.id) if (chunk := views.chunk(part)) is not None]
    return Response(views.body(state, answer, more), media_type="application/json")


async def cancel(model: Model, request: Request) -> Response:
    """Cancel a prediction, and answer what it is now."""
    jobs = pages.own_jobs(model, request)
    state = await pages.find(jobs, request.path_params["id"])
    cancelled = await jobs.cancel(state.job.id) if state is not None else None
    if cancelled is None:
        return _not_found()
    # One that has ended stays as it is.
    answer = await jobs.answer(cancelled.job.id) if cancelled.job.is_ended else None
    return Response(views.body(cancelled, answer, _more(cancelled.job)), media_type="application/json")


async def stream(model: Model, request: Request) -> Response:
    """The outputs of a prediction as server-sent events, then `done`."""
    jobs = pages.own_jobs(model, request)
    state = await pages.find(jobs, request.path_params["id"])
    if state is None:
        return _not_found()
    events = _events(jobs, state.job.id)
    return StreamingResponse(events, media_type="text/event-stream", headers={"cache-control": "no-store"})


async def _events(jobs: ClientJobs, name: str) -> AsyncIterator[bytes]:
    sent = 0
    async for state in jobs.follow(name):
        parts = await jobs.parts(name, sent)
        for part in parts:
            sent += 1
            chunk = views.chunk(part)
            if chunk is not None:
                yield _event(
                    "output", f"{state.job.attempts}:{sent}", chunk if isinstance(chunk, str) else _text(chunk)
                )
        if state.job.is_ended:
            answer = await jobs.answer(name)
            final = json.loads(views.body(state, answer))
            if not sent and final["output"] is not None:
                output = final["output"]
                yield _event("output", "1:1", output if isinstance(output, str) else _text(output))
            if final["status"] == "failed":
                yield _event("error", "error", _text({"detail": final["error"]}))
            reason = {"canceled": {"reason": "canceled"}, "failed": {"reason": "error"}}.get(final["status"], {})
            yield _event("done", "done", _text(reason))


def _event(kind: str, name: str, text: str) -> bytes:
    lines = "".join(f"data: {line}\n" for line in text.split("\n"))
    return f"event: {kind}\nid: {name}\n{lines}\n".encode("utf-8", "replace")


def _text(value: Any) -> str:
    return views.to_json(value).decode()


def model_page(model: Model, request: Request) -> Response:
    """The model, as clients look it up by `owner/name`."""
    owner, name = request.path_params["owner"], request.path_params["name"]
    return pages.json_answer(
        {
            "url": "", "owner": owner, "name": name, "description": model.api.get("summary", ""),
            "visibility": "private", "run_count": 0, "latest_version": _version(model),
        }
    )  # fmt: skip


def versions_page(model: Model, request: Request) -> Response:
    return pages.json_answer({"previous": None, "next": None, "results": [_version(model)]})


def version_page(model: Model, request: Request) -> Response:
    return pages.json_answer({**_version(model), "id": request.path_params["version"]})


def _version(model: Model) -> dict[str, Any]:
    document = pages.platform(model).get("openapi") or {}
    return {"id": "1", "created_at": moment(0.0), "cog_version": pages.VERSION, "openapi_schema": document}


def error(fault: Fault, request_id: str) -> ErrorAnswer:
    """A fault in the form of Replicate's API, whose client shows `detail`."""
    content = {"title": fault.code, "detail": fault.message, "status": fault.status}
    return ErrorAnswer(fault.status, JSON, views.to_json(content))


def _not_found() -> Response:
    return pages.json_answer({"detail": "The requested resource could not be found.", "status": 404}, 404)
