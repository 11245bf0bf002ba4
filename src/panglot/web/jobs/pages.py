"""The routes of /jobs: a job, its answer, its events, and the list of all for the administrator."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from panglot.engine.call import Fault
from panglot.jobs.interface import Jobs, JobState
from panglot.jobs.job import ID, STATES, JobTrouble, StoredAnswer
from panglot.web.contract import ADMIN, JOBS, Page, RouteRefused
from panglot.web.front import Front
from panglot.web.job_contract import PlatformAnswer
from panglot.web.jobs import asking
from panglot.web.jobs.model_jobs import refusing
from panglot.web.jobs.viewer import Viewer
from panglot.web.jobs.views import no_answer, route_of, to_json, view
from panglot.web.pages.routes import jobs_page

MOST_LISTED = 200
MOST_DIGITS = 18
ABOVE_ALL = (1 << 53) - 1
"""Above the number of every stored job: the list goes on with the newest. JavaScript has no larger exact number."""
BREATH = 0.1
"""Seconds between two events of progress."""
QUIET = 15.0
"""Seconds after which a comment shows that the stream of events lives."""
UNKNOWN = Fault(404, "no_job", "there is no such job, or it is another client's")


def _board(front: Front) -> Jobs:
    if front.jobs is None:
        raise RouteRefused(UNKNOWN)
    return front.jobs


async def _state(front: Front, request: Request) -> JobState:
    """The job that a path names, if its owner asks for it. Raises RouteRefused."""
    name = request.path_params["id"]
    with refusing():
        state = await _board(front).get(name) if ID.fullmatch(name) else None
    if state is None or not Viewer.of(request).sees(state.job):
        raise RouteRefused(UNKNOWN)
    return state


def _json(state: JobState, status: int = 200) -> Response:
    return Response(to_json(state), status, media_type="application/json")


async def show(front: Front, request: Request) -> Response:
    """A job; with `Prefer: wait=N` once it has ended, or after so many seconds."""
    state = await _state(front, request)
    wait = asking.preference(request.headers.get("prefer", "").encode("latin-1")).wait
    if wait and not state.job.is_ended:
        with refusing():
            later = await _board(front).wait(state.job.id, min(wait, asking.LONGEST_WAIT))
        if later is None:
            raise RouteRefused(UNKNOWN)
        state = later
    return _json(state)


async def result(front: Front, request: Request) -> Response:
    """The answer of a job, with its own status, headers and bytes: what a client gets that waits for its end."""
    state = await _state(front, request)
    if not state.job.is_ended:
        raise RouteRefused(Fault(409, "not_ended", f"the job is {state.job.state_name}; try again later", 1))
    with refusing():
        answer = await _board(front).answer(state.job.id)
    if answer is None:
        raise RouteRefused(no_answer(state.job))
    route = route_of(front.models, state.job)
    written: PlatformAnswer | StoredAnswer = answer
    if route is not None and route.job is not None and route.job.ended is not None:
        written = route.job.ended(state, answer)
    content_type, *lines = written.head.split(b"\0")
    response = Response(written.body, written.status)
    if content_type:
        response.headers["content-type"] = content_type.decode("latin-1")
    if content_type != b"application/json":
        response.headers["x-content-type-options"] = "nosniff"
    for line in filter(None, lines):
        name, _, value = line.decode("latin-1").partition(":")
        response.headers.append(name, value.strip())
    return response


async def cancel(front: Front, request: Request) -> Response:
    """Cancel a job; of a job that has ended, remove the body and the answer."""
    state = await _state(front, request)
    with refusing():
        board = _board(front)
        changed = await (board.erase if state.job.is_ended else board.cancel)(state.job.id)
    if changed is None:
        raise RouteRefused(UNKNOWN)
    return _json(changed)


async def retry(front: Front, request: Request) -> Response:
    """Queue a failed job once more."""
    state = await _state(front, request)
    with refusing():
        again = await _board(front).requeue(state.job.id, front.settings.jobs_lifetime)
    if again is None:
        message = f"the job is {state.job.state_name}: only a job that failed, and has its body, runs again"
        raise RouteRefused(Fault(409, "not_failed", message))
    return _json(again, 202)


async def listed(front: Front, request: Request) -> Response:
    """The newest jobs; a page for a browser, JSON otherwise."""
    query = request.query_params
    state, before, limit = query.get("state", ""), _whole(query.get("before", "0")), _whole(query.get("limit", "50"))
    if (state and state not in STATES) or before is None or limit is None:
        message = f"state is one of {', '.join(dict.fromkeys(STATES))}; before and limit are whole numbers"
        raise RouteRefused(Fault(400, "bad_query", message))
    if "text/html" in request.headers.get("accept", ""):
        return jobs_page(front, request)
    states = tuple(number for number, name in enumerate(STATES) if name == state)
    with refusing():
        board = _board(front)
        most = max(1, min(limit, MOST_LISTED))
        jobs = await board.listed(states, query.get("model", ""), before, most)
        counts = dict.fromkeys(STATES, 0)
        for _, number, count in await board.counts():
            counts[STATES[number]] += count
    # A job whose client waits has no number: it is not stored.
    following = jobs[-1].job.seq or ABOVE_ALL if len(jobs) == most else None
    shown = {"jobs": [view(each) for each in jobs], "counts": counts, "durable": board.durable, "before": following}
    return Response(orjson.dumps(shown), media_type="application/json")


def _whole(text: str) -> int | None:
    """The whole number that a client sends; None for anything else, and for more than a database can hold."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS else None


# Events


async def events(front: Front, request: Request) -> Response:
    """What happens to a job, as server-sent events; `Last-Event-ID` goes on behind the event of that id."""
    state = await _state(front, request)
    given = request.headers.get("last-event-id", "")
    attempt, _, number = given.partition(".")
    begun_anew = bool(given) and attempt != str(state.job.attempts)
    after = 0 if begun_anew else _whole(number) or 0
    watching = contextlib.ExitStack()
    # Not in the generator: a reader too many is refused before the answer begins.
    with refusing():
        changed = watching.enter_context(_board(front).watch(state.job.id))
    headers = {"cache-control": "no-store"}
    stream = _events(front, state, after, begun_anew, changed, watching)
    return StreamingResponse(stream, media_type="text/event-stream", headers=headers)


async def _events(
    front: Front,
    state: JobState,
    sent: int,
    begun_anew: bool,
    changed: asyncio.Event,
    watching: contextlib.ExitStack,
) -> AsyncIterator[bytes]:
    """The events of a job from its part `sent` on. An id is the attempt and how many parts came before.

    A reader of an earlier attempt (`begun_anew`) hears of the new one before its parts, also when it has ended.
    """
    board, name = _board(front), state.job.id
    shown: tuple[Any, ...] = ()
    progress: Any = None
    attempt = state.job.attempts
    with watching:
        while True:
            changed.clear()
            try:
                current = await board.get(name)
            except JobTrouble:
                # The reader comes again, and goes on behind the last event that it has.
                return
            if current is None:
                return
            job = current.job
            if job.attempts != attempt:
                # It began anew: a reader drops the parts of the attempt before.
                attempt, sent = job.attempts, 0
            if (job.state, job.attempts) != shown:
                shown = job.state, job.attempts
                # The state of a job that has ended comes behind its parts.
                if not job.is_ended or begun_anew:
                    yield _event("state", f"{attempt}.{sent}", view(current))
            if current.progress is not None and current.progress != progress:
                progress = current.progress
                data = {"progress": progress.fraction, "text": progress.text}
                yield _event("progress", f"{attempt}.{sent}", data)
            try:
                parts = await board.parts(name, sent)
            except JobTrouble:
                parts = []
            for part in parts:
                sent += 1
                yield _event("part", f"{attempt}.{sent}", _part(part))
            if job.is_ended:
                yield _event("state", f"{attempt}.{sent}", view(current))
                yield _event("end", f"{attempt}.{sent}", {"state": job.state_name})
                return
            if front.draining:
                return
            await asyncio.sleep(BREATH)
            try:
                async with asyncio.timeout(QUIET):
                    await changed.wait()
            except TimeoutError:
                yield b": the job goes on\n\n"


def _part(part: bytes) -> dict[str, str]:
    try:
        return {"text": part.decode()}
    except UnicodeDecodeError:
        return {"data": base64.b64encode(part).decode(), "encoding": "base64"}


def _event(kind: str, number: str, value: Any) -> bytes:
    return b"event: %b\nid: %b\ndata: %b\n\n" % (kind.encode(), number.encode(), orjson.dumps(value))


PAGES = (
    Page("/jobs", ADMIN, listed),
    Page("/jobs/{id}", JOBS, show),
    Page("/jobs/{id}", JOBS, cancel, methods=("DELETE",)),
    Page("/jobs/{id}/result", JOBS, result),
    Page("/jobs/{id}/events", JOBS, events),
    Page("/jobs/{id}/retry", JOBS, retry, methods=("POST",)),
)
