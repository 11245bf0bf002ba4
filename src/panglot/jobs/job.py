"""A job: a call that outlives its request. Its states, its id, and its stored fields."""

from __future__ import annotations

import json
import re
import secrets
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

QUEUED, RUNNING, DONE, FAILED, CANCELLED, EXPIRED, DELAYED, INTERRUPTED = range(8)
"""The states of a job. DELAYED is shown as queued: the job waits for its next attempt. INTERRUPTED: the server ended
while the job ran, and the job may not run twice."""
STATES = ("queued", "running", "done", "failed", "cancelled", "expired", "queued", "interrupted")
"""The names of the states, as clients see them."""
ENDED = frozenset({DONE, FAILED, CANCELLED, EXPIRED, INTERRUPTED})
ID = re.compile(r"[0-9a-hjkmnp-tv-z]{26}")
ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
PAIRS = tuple(first + second for first in ALPHABET for second in ALPHABET)
PLACES = tuple(range(120, -1, -10))
"""Two characters of an id are ten bits of its number. These are the places where the ten bits begin."""
END_EVENTS = {DONE: "completed", FAILED: "failed", CANCELLED: "cancelled", EXPIRED: "expired", INTERRUPTED: "failed"}
"""The event of a webhook for each way to end."""
EVENTS = ("started", "completed", "failed", "cancelled", "expired", "retrying")
"""The events that a client may ask for."""
OUTPUT, LOGS = LIVE_EVENTS = ("output", "logs")
"""Further events, which a dialect may ask for while a job runs: new output, and new printed text."""
DEFAULT_EVENTS = ("completed", "failed", "cancelled", "expired")

FULL, DISK, UNAVAILABLE, KEY_REUSED = "jobs_full", "jobs_disk", "jobs_unavailable", "key_reused"
DAMAGED = "answer_damaged"


class JobTrouble(Exception):
    """The reason why the store refused a command; `code` is one of the five above.

    `retry_after` are the seconds after which it may succeed, where the store knows; else 0.
    """

    def __init__(self, code: str, message: str, retry_after: int = 0) -> None:
        super().__init__(message)
        self.code = code
        self.retry_after = retry_after


class Webhook(NamedTuple):
    """The receiver of a job's events."""

    url: str
    events: tuple[str, ...] = DEFAULT_EVENTS
    every: float = 0.5
    """Seconds between two events about a job that runs."""
    trace: tuple[tuple[str, str], ...] = ()
    """The headers of the request that continue a trace (W3C Trace Context), for the receiver."""

    def to_text(self) -> str:
        stored = {"url": self.url, "events": list(self.events), "every": self.every}
        return json.dumps({**stored, "trace": self.trace} if self.trace else stored)

    @classmethod
    def from_text(cls, text: str) -> Webhook:
        stored = json.loads(text)
        every, trace = float(stored.get("every", 0.5)), tuple(map(tuple, stored.get("trace", ())))
        return cls(stored["url"], tuple(stored["events"]), every, trace)


class NewJob(NamedTuple):
    """A job to be stored."""

    id: str
    model: str
    """Which model runs it: its name, and its version where that is not the first."""
    route: str
    """The path of its route, as the model's contract declares it."""
    head: bytes
    """The fields of the request's head that the worker gets; it holds no credentials."""
    body: bytes
    owner: str = ""
    """Who submitted it: the name of an access key; empty: the server's token, or nobody in particular."""
    key: str | None = None
    """The client's Idempotency-Key: a repeat is the same job."""
    digest: bytes = b""
    """Of the request; a repeat of the key must have the same. Empty: any request with this key is the same job."""
    lifetime: float = 86400.0
    """Seconds that it may wait before it expires."""
    retain: float = 3600.0
    """Seconds that it is stored after its end."""
    webhook: Webhook | None = None
    lane: str = ""
    own: str = ""
    """A text that the dialect stores with it."""
    rerun: bool = True
    """Whether it may run again after the server died while it ran."""
    run_timeout: float = 0.0
    """Seconds that one run may take; 0: the limit of the model counts."""


class Job(NamedTuple):
    """A stored job, without its bodies. Times are seconds since 1970; None: not yet."""

    seq: int
    """The order of acceptance."""
    id: str
    model: str
    route: str
    owner: str
    key: str | None
    state: int
    attempts: int
    crashes: int
    accepted: float
    started: float | None
    ended: float | None
    due: float
    expires: float
    retain: float
    webhook: str | None
    own: str
    size: int
    status: int | None
    answer_head: bytes | None
    answer_size: int
    answer_crc: int | None
    answer_filed: int
    parts: bytes | None
    fault: str | None

    @property
    def is_ended(self) -> bool:
        return self.state in ENDED

    @property
    def state_name(self) -> str:
        return STATES[self.state]

    @property
    def error(self) -> Mapping[str, Any] | None:
        """Code and message of the engine, where there is no answer of the script; else None."""
        return json.loads(self.fault) if self.fault else None


class Claimed(NamedTuple):
    """A job that is about to run: it is stored as running."""

    job: Job
    head: bytes
    lane: str
    run_timeout: float
    body: bytes


class JobOutcome(NamedTuple):
    """The end of a run."""

    state: int
    """DONE or FAILED."""
    status: int
    head: bytes
    body: bytes
    parts: bytes = b""
    """Where the parts of a streamed answer end in the body, 8 bytes each; empty: it was not streamed."""
    fault: str | None = None


class StoredAnswer(NamedTuple):
    """The answer of a job that has ended."""

    status: int
    head: bytes
    """As in a reply of a worker: the content type and further header lines."""
    body: bytes
    ends: tuple[int, ...] = ()
    """Where the parts of a streamed answer end."""

    def part(self, number: int) -> bytes:
        """A part of a streamed answer; the first is 0."""
        return self.body[self.ends[number - 1] if number else 0 : self.ends[number]]


class DueWebhook(NamedTuple):
    """An event that is due to be sent to its receiver."""

    number: int
    id: str
    seq: int
    event: str
    url: str
    attempts: int


class JobLimits(NamedTuple):
    """How much the store may hold: jobs in all, bytes of their bodies and answers, and jobs of a model that wait."""

    jobs: int
    bytes: int
    queued: int


class Swept(NamedTuple):
    """The work of one sweep: jobs that expired, and models whose delayed jobs are queued again."""

    expired: list[Job]
    queued: set[str]


def new_id(now: float | None = None) -> str:
    """48 bits of milliseconds and 80 random bits: nobody can guess an id, and the index of ids grows at its end."""
    number = int((time.time() if now is None else now) * 1000) << 80 | secrets.randbits(80)
    return "".join([PAIRS[number >> place & 1023] for place in PLACES])


def fault_text(code: str, message: str, **more: Any) -> str:
    """The column `fault` of a job."""
    return json.dumps({"code": code, "message": message, **more})
