"""How a platform's routes make jobs of their requests, and how its pages use these jobs."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Protocol

from starlette.requests import Request

from panglot.jobs.interface import JobState as JobState
from panglot.jobs.job import StoredAnswer as StoredAnswer
from panglot.jobs.job import Webhook as Webhook

FOREVER = math.inf


class PlatformAnswer(NamedTuple):
    """An answer as a platform writes it."""

    status: int
    content_type: bytes
    body: bytes
    headers: tuple[bytes, ...] = ()
    """Further header lines, such as `b"x-error-code: 7"`."""

    @property
    def head(self) -> bytes:
        """The content type and the further lines, as the head of a worker's reply has them."""
        return b"\0".join((self.content_type, *self.headers))


class JobRequest(NamedTuple):
    """What a dialect may look at of a request that can become a job."""

    method: str
    path_values: Mapping[str, str]
    """What stands for the free segments of the path."""
    query: Mapping[str, str]
    headers: Mapping[str, str]
    """By lower-case name; none of them carries credentials."""
    fields: Mapping[str, Any]
    """The top-level fields of the JSON body that `JobRoute.fields` names, as far as they are there."""
    respond_async: bool
    """Whether the client sends `Prefer: respond-async`."""
    wait: float | None
    """The seconds of `Prefer: wait=N`."""


@dataclass(frozen=True)
class JobOptions:
    """How one request becomes a job. Where a value is None, the settings and the request's own headers decide."""

    is_job: bool = True
    """False: it is answered as any call, and nothing is stored."""
    wait: float | None = None
    """Seconds that the answer waits for the end of the job; FOREVER: until it has ended."""
    attached: bool = False
    """Whether the job is cancelled when its client disconnects before the answer. Where nothing of it is stored after
    the answer either, it is stored only when the wait is over: until then it runs as a request does."""
    key: str | None = None
    """Under which `ClientJobs.by_key` finds it. A second request with this key is the same job."""
    any_request: bool = False
    """Whether a second request with this key may differ: the key alone counts. Else it is refused with 422."""
    lifetime: float | None = None
    """Seconds that it may wait for a worker."""
    retain: float | None = None
    """Seconds that it is stored after its end."""
    retain_answered: float | None = None
    """Seconds that it is stored after the client that waited for its end has the answer; None: as `retain` says. For
    routes whose requests are nearly all answered at once: their jobs would fill the store."""
    run_timeout: float = 0.0
    """The longest that one run may take; 0: as the settings say."""
    webhook: Webhook | None = None
    own: Mapping[str, Any] = field(default_factory=dict)
    """What the dialect stores with the job, as JSON; `own_of` reads it."""

    @property
    def is_held(self) -> bool:
        """Whether nobody could ask for the job before the wait is over, so that it is stored only then."""
        return self.attached and self.retain_answered == 0 and self.key is None and self.webhook is None


JobAnswer = Callable[[JobState], PlatformAnswer]
EndedJobAnswer = Callable[[JobState, StoredAnswer | None], PlatformAnswer]
WebhookBody = Callable[[JobState, str, StoredAnswer | None], bytes]


@dataclass(frozen=True)
class JobRoute:
    """How an InferRoute makes jobs, where its platform defines that. Without it, `Prefer: respond-async` makes one."""

    always: bool = False
    """Whether every request may become a job: `options` decides. Else only those with `Prefer: respond-async`."""
    fields: tuple[str, ...] = ()
    """The top-level fields of a JSON body that the front reads for `options`."""
    options: Callable[[JobRequest], JobOptions] | None = None
    """How a request becomes a job. Raises RouteRefused, which the route's own writer of errors answers."""
    usual: JobOptions | None = None
    """What `options` gives for most requests: without a query, a preference, a key or a webhook in the headers, and
    without any of `unusual` in the body. These requests are not looked at any further."""
    unusual: tuple[str, ...] = ()
    """The fields without which a request is a usual one."""
    lifetime_ends_run: bool = False
    """Whether `JobOptions.lifetime` ends a job also while it runs."""
    accepted: JobAnswer | None = None
    """The answer for a job that has not ended; None: 202 with the job as JSON. Panglot adds headers alone."""
    ended: EndedJobAnswer | None = None
    """The answer for a job that ended while the client waited; None: the script's own."""
    webhook: WebhookBody | None = None
    """The body that its webhooks send, given the job, the event and the answer; None: as docs/guides/jobs.md says."""

    def is_usual(self, body: bytes) -> bool:
        """Whether a body surely has none of the fields `unusual`; one with a backslash may have escaped names."""
        return b"\\" not in body and not any(name in body for name in self._unusual_names)

    @cached_property
    def _unusual_names(self) -> tuple[bytes, ...]:
        return tuple(b'"%b"' % name.encode() for name in self.unusual)


class ClientJobs(Protocol):
    """The jobs of one model that a client may see. All methods raise RouteRefused.

    Another client's job is not there: `find` and the others give None, or nothing, for its id.
    """

    async def find(self, name: str) -> JobState | None:
        """A job by its id."""

    async def by_key(self, key: str) -> JobState | None:
        """A job by its `JobOptions.key`, among those that this client has submitted."""

    async def wait(self, name: str, seconds: float) -> JobState | None:
        """A job once it has ended, or as it is after so many seconds."""

    async def answer(self, name: str) -> StoredAnswer | None:
        """The answer of a job that has ended; None where there is none."""

    async def request(self, name: str) -> tuple[bytes, bytes] | None:
        """The packed `wire.Head` and the body of a job's request; None where they are gone."""

    async def parts(self, name: str, after: int = 0) -> list[bytes]:
        """The parts of a streamed answer behind the first `after`, as far as they have come."""

    async def new_parts(self, name: str) -> list[bytes]:
        """The parts since the last time this was called for the job: one reader has each of them once."""

    def follow(self, name: str) -> AsyncIterator[JobState]:
        """The job whenever something of it has changed: its state, progress, parts or prints. Ends with the job."""

    async def cancel(self, name: str) -> JobState | None:
        """Cancel a job; one that has ended stays as it is."""

    async def retry(self, name: str) -> JobState | None:
        """Queue a failed job once more; None where it has not failed."""

    async def purge(self) -> int:
        """Cancel all jobs that wait; how many these were."""


class ModelJobs(Protocol):
    """The jobs of one model, as `Model.jobs` gives them to the pages of a dialect."""

    def of(self, request: Request) -> ClientJobs:
        """The jobs that the client of a request may see: its own, or all where it has the server's token."""

    async def counts(self) -> Mapping[str, int]:
        """How many jobs there are by the names of states: queued, running, done, failed, cancelled, expired."""
