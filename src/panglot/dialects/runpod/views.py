"""A job as clients of the platform see it.

The stored answer of a worker is a JSON object with `output` or `error`, or parts that are such objects. It is joined
with the fields of the job as bytes: results may have many megabytes, and the front never parses them.
"""

from __future__ import annotations

import json
import re
from typing import Any

import orjson

from panglot.jobs.job import CANCELLED, DELAYED, DONE, EXPIRED, FAILED, INTERRUPTED, QUEUED, RUNNING, Job
from panglot.web.job_contract import JobState, PlatformAnswer, StoredAnswer

JSON = b"application/json"
STATUSES = {
    QUEUED: "IN_QUEUE", DELAYED: "IN_QUEUE", RUNNING: "IN_PROGRESS", DONE: "COMPLETED", FAILED: "FAILED",
    CANCELLED: "CANCELLED", EXPIRED: "TIMED_OUT", INTERRUPTED: "FAILED",
}  # fmt: skip
OUTPUT = b'{"output":'
"""The beginning of each part of a stream. A part that begins otherwise says why the stream failed."""
ID = re.compile(r"(?:sync-)?([0-9a-z]{26})(?:-u1)?")
SYNC, SUFFIX = "sync-", "-u1"
NO_REASON = "the job has no answer"


def shown_id(job: Job) -> str:
    """The id by which clients know a job. The worker's half of the dialect gives it to the handler in the same form."""
    return (SYNC if job.route.endswith("/runsync") else "") + job.id + SUFFIX


def stored_id(shown: str) -> str:
    """The id in the store, for the id that a client sends; empty where that is no id of a job."""
    match = ID.fullmatch(shown)
    return match[1] if match is not None else ""


def status(job: Job) -> str:
    """The platform's name for the state of a job."""
    overran = job.state == FAILED and job.error is not None and job.error.get("code") == "timeout"
    return "TIMED_OUT" if overran else STATUSES[job.state]


def fields(state: JobState) -> dict[str, Any]:
    """The fields that every job has. Times are milliseconds."""
    job = state.job
    content: dict[str, Any] = {}
    if job.started is not None:
        content["delayTime"] = round((job.started - job.accepted) * 1000)
        if job.ended is not None:
            content["executionTime"] = round((job.ended - job.started) * 1000)
    content["id"] = shown_id(job)
    content["status"] = status(job)
    if job.started is not None:
        content["workerId"] = job.model
    return content


def body(state: JobState, answer: StoredAnswer | None) -> bytes:
    """The job, with its output or error once there is one."""
    return joined(fields(state), result(state, answer))


def result(state: JobState, answer: StoredAnswer | None) -> bytes:
    """A JSON object with `output` or `error`; an empty one where there is neither."""
    job = state.job
    if not job.is_ended:
        progress = state.progress
        return b"{}" if progress is None else _json({"output": progress.text})
    if answer is None:
        error = job.error
        return b"{}" if job.state == CANCELLED else _json({"error": error["message"] if error else NO_REASON})
    if answer.ends:
        return _of_parts([answer.part(number) for number in range(len(answer.ends))])
    if not answer.body:
        # The answer of a generator that has yielded nothing.
        return b'{"output":[]}'
    if 400 <= answer.status < 500 and not answer.body.startswith(b'{"error":'):
        return _json({"error": answer.body.decode("utf-8", "replace")})
    return answer.body


def _of_parts(parts: list[bytes]) -> bytes:
    """All parts of a generator's answer as one list; or its last part, where this says why it failed."""
    if not parts[-1].startswith(OUTPUT):
        return parts[-1]
    return b'{"output":[' + b",".join(part[len(OUTPUT) : -1] for part in parts) + b"]}"


def joined(content: dict[str, Any], rest: bytes) -> bytes:
    """The fields of a job and a JSON object as one."""
    return _json(content)[:-1] + (b"}" if rest == b"{}" else b"," + rest[1:])


def _json(value: Any) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError:
        # A script's progress may have lone surrogates, or numbers of any size, which orjson refuses.
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


# Answers of the routes


def accepted(state: JobState) -> PlatformAnswer:
    """The answer for a job that has not ended."""
    content = fields(state)
    # The SDK's server calls a job of /run IN_PROGRESS from the start, also while it waits.
    if state.job.route == "/run":
        content["status"] = "IN_PROGRESS"
    return PlatformAnswer(200, JSON, _json(content))


def ended(state: JobState, answer: StoredAnswer | None) -> PlatformAnswer:
    """The answer for a job that has ended: 200 for every end, because the platform's client reads no other answer.

    A body that was refused was never a job for the platform, and has its own status.
    """
    if answer is None:
        return PlatformAnswer(200, JSON, body(state, None))
    if 400 <= answer.status < 500 and state.job.error is None:
        return PlatformAnswer(answer.status, JSON, answer.body)
    return PlatformAnswer(200, JSON, body(state, answer), tuple(answer.head.split(b"\0")[1:]))
