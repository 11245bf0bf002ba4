"""A prediction as clients see it.

The stored answer of a worker is the prediction as JSON, without its id; or events, of which the last one has this JSON.
The id is put before it as bytes: outputs may have many megabytes, and the front never parses them.
"""

from __future__ import annotations

import json
from typing import Any

from panglot.jobs.job import CANCELLED, RUNNING, Job
from panglot.web.job_contract import JobState, PlatformAnswer, StoredAnswer
from panglot.web.jobs.views import moment, own_of

JSON = b"application/json"
PREDICTION, TRAINING = KINDS = ("prediction", "training")
OUTPUT, COMPLETED = b"event: output\ndata: ", b"event: completed\ndata: "
"""How the events begin, where a predictor yields its outputs."""


def key(name: str, kind: str = PREDICTION) -> str:
    """The key of a job, where the client has chosen the id of the prediction or training."""
    return f"{kind}:{name}"


def shown_id(job: Job) -> str:
    """The id by which clients know a prediction: the one they have chosen, or the id of the job."""
    return str(own_of(job).get("id") or job.id)


def status(job: Job) -> str:
    """The platform's name for the state of a job that has no answer."""
    if not job.is_ended:
        return "processing" if job.state == RUNNING else "starting"
    return "canceled" if job.state == CANCELLED else "failed"


def without_answer(state: JobState) -> dict[str, Any]:
    """A prediction without an answer of its script: it has not ended, or the engine has answered instead."""
    job = state.job
    message = job.error["message"] if job.error else None
    return {
        "input": own_of(job).get("input", {}),
        "output": None,
        "started_at": moment(job.started),
        "completed_at": moment(job.ended),
        "logs": state.printed,
        "error": message if job.is_ended else None,
        "status": status(job),
        "metrics": None,
    }


def whole(state: JobState, answer: StoredAnswer | None) -> bytes:
    """The prediction that a worker has stored, as JSON; empty where it has stored none."""
    # Where the engine has answered instead of the script, the stored answer is the one for the fault.
    if answer is None or state.job.error is not None or answer.status not in (200, 500):
        return b""
    if not answer.ends:
        return answer.body
    last = answer.part(len(answer.ends) - 1)
    return last[len(COMPLETED) :].strip() if last.startswith(COMPLETED) else b""


def body(state: JobState, answer: StoredAnswer | None, more: dict[str, Any] | None = None) -> bytes:
    """A prediction with its id, its version, when it was accepted, and further fields."""
    front = {"id": shown_id(state.job), "version": None, "created_at": moment(state.job.accepted), **(more or {})}
    stored = whole(state, answer)
    return joined(front, stored) if stored else to_json({**without_answer(state), **front})


def joined(front: dict[str, Any], stored: bytes) -> bytes:
    """One JSON object of some fields and of a stored object, which has other fields and is not empty."""
    return to_json(front)[:-1] + b"," + stored[1:]


def to_json(value: Any) -> bytes:
    # The output of a script may have lone surrogates, which UTF-8 cannot encode.
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


# Answers of the routes


def accepted(state: JobState) -> PlatformAnswer:
    return PlatformAnswer(202, JSON, body(state, None))


def ended(state: JobState, answer: StoredAnswer | None) -> PlatformAnswer:
    """The answer for a prediction that has ended: 200, also where it failed. Refused inputs have their own status."""
    if answer is not None and state.job.error is not None:
        # The engine has answered: a worker died, or a deadline has passed.
        return PlatformAnswer(answer.status, JSON, body(state, None))
    if answer is not None and 400 <= answer.status < 500:
        return PlatformAnswer(answer.status, JSON, answer.body)
    return PlatformAnswer(200, JSON, body(state, answer))


def webhook(state: JobState, event: str, answer: StoredAnswer | None) -> bytes:
    return body(state, answer, so_far(state, answer))


def so_far(state: JobState, answer: StoredAnswer | None) -> dict[str, Any]:
    """The outputs of a running prediction so far, where its answer comes in parts."""
    if answer is None or not answer.ends or state.job.is_ended:
        return {}
    parts = (answer.part(number) for number in range(len(answer.ends)))
    return {"output": [given for part in parts if (given := chunk(part)) is not None]}


def chunk(part: bytes) -> Any:
    """The output in an event of the worker; None for other events."""
    return json.loads(part[len(OUTPUT) :])["chunk"] if part.startswith(OUTPUT) else None
