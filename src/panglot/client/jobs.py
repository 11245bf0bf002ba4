"""Jobs, as a client sees them: which requests follow one, and a handle for each of the two clients.

    job = client.submit(text="a long text")
    for event in job.events():
        print(event.kind, event.data)
    print(job.result())

A job outlives the connection, and the client too: `client.job(name)` gives a handle for one that was submitted before.
"""

from __future__ import annotations

import dataclasses
import json
import re
import secrets
import time
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import httpx

from panglot.client.answers import CallAnswer, answer_of
from panglot.client.attempts import CallPolicy, Outgoing, Pause, Steps, attempts
from panglot.client.errors import CallError

if TYPE_CHECKING:
    from panglot.client.asynchronous import AsyncClient
    from panglot.client.synchronous import Client

LONGEST_POLL = 20.0
"""Seconds that one request waits for the end of a job: proxies cut longer ones."""
PAUSE = 0.5
"""Seconds before a stream of events that broke off is opened again."""
ID = re.compile(r"/jobs/([0-9a-z]{26})$")


class JobEvent(NamedTuple):
    """Something that happened to a job."""

    kind: str
    """`state`, `progress`, `part` or `end`."""
    id: str
    data: Any


class EventReader:
    """Takes the lines of a stream of events, and gives each event that is complete."""

    def __init__(self, last: str = "") -> None:
        self.last = last
        """The id of the last event. A further stream begins behind it."""
        self.ended = False
        self._fields: dict[str, str] = {}

    def feed(self, line: str) -> Iterator[JobEvent]:
        """The event that this line completes, if it does."""
        line = line.rstrip("\r")
        if line:
            name, _, value = line.partition(":")
            self._fields[name] = value.removeprefix(" ")
        elif "data" in self._fields:
            fields, self._fields = self._fields, {}
            event = JobEvent(fields.get("event", ""), fields.get("id", ""), json.loads(fields["data"]))
            self.last, self.ended = event.id, event.kind == "end"
            yield event

    def begin_anew(self) -> None:
        """Drop the event that was cut off with its stream."""
        self._fields = {}


def as_job(request: Outgoing, key: str, webhook: str) -> Outgoing:
    """The request that makes a job of an input. By its key, a repeat of the request is the same job."""
    headers = {**request.headers, "prefer": "respond-async", "idempotency-key": key or secrets.token_hex(16)}
    if webhook:
        headers["job-webhook"] = webhook
    return dataclasses.replace(request, headers=headers)


def name_of(response: httpx.Response) -> str:
    """The id of the job that a server has accepted. Raises CallError where it has not."""
    if response.status_code >= 400:
        answer_of(response)
    match = ID.search(response.headers.get("location", ""))
    if match is None:
        message = (
            "this route makes no jobs: the server began to answer at once, as it does for an uploaded video; "
            "use stream or ask instead"
        )
        raise CallError(message, status=response.status_code, code="no_job")
    return match[1]


class JobSteps:
    """The requests about one job. Nothing here sends or sleeps: the client that drives the steps does."""

    def __init__(self, name: str, policy: CallPolicy, url: str) -> None:
        self.path = f"/jobs/{name}"
        # Reading a job twice does no harm.
        self.policy = dataclasses.replace(policy, retry=True)
        self.url = url

    def _sending(self, method: str, path: str, policy: CallPolicy, **headers: str) -> Steps[httpx.Response]:
        request = Outgoing(method, path, {name.replace("_", "-"): value for name, value in headers.items()})
        return attempts(request, policy, self.url, time.monotonic, whole=not path.endswith("/events"))

    def state(self, method: str = "GET", wait: float = 0.0) -> Steps[dict[str, Any]]:
        """The job as it is now, or at its end, if the end comes within `wait` seconds. Raises CallError."""
        # The server waits too: this must not make the request seem late.
        policy = dataclasses.replace(self.policy, timeout=self.policy.timeout + wait)
        headers = {"prefer": f"wait={max(1, int(wait))}"} if wait else {}
        value: dict[str, Any] = answer_of((yield from self._sending(method, self.path, policy, **headers))).value
        return value

    def answer(self, timeout: float | None) -> Steps[httpx.Response]:
        """The response of a job that has ended. Raises CallError, and TimeoutError when it has not ended in time."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            left = LONGEST_POLL if deadline is None else deadline - time.monotonic()
            job = yield from self.state(wait=min(LONGEST_POLL, max(0.0, left)))
            if job["ended"]:
                break
            if left <= 0:
                raise TimeoutError(f"the job {job['id']} is {job['state']} after {timeout:g} s")
        # Every status is one of the script's answer: 503 does not mean here that the server is too busy.
        policy = dataclasses.replace(self.policy, too_busy=())
        return (yield from self._sending("GET", f"{self.path}/result", policy))

    def events(self, reader: EventReader, first: bool) -> Steps[httpx.Response]:
        """The stream of events, from the beginning or behind the last event that was read. Raises CallError."""
        if not first:
            yield Pause(PAUSE)
        reader.begin_anew()
        headers = {"last_event_id": reader.last} if reader.last else {}
        response = yield from self._sending("GET", f"{self.path}/events", self.policy, **headers)
        if response.status_code >= 400:
            answer_of(response)
        return response


class JobHandle:
    """A job of a server, as `Client.submit` gives it."""

    def __init__(self, client: Client, name: str, steps: JobSteps) -> None:
        self.id = name
        self._client = client
        self._steps = steps

    def __repr__(self) -> str:
        return f"JobHandle({self.id!r})"

    def state(self) -> dict[str, Any]:
        """The job as it is: `state`, `progress`, `attempts`, times, `error`. Raises CallError."""
        return self._client._drive(self._steps.state())

    def result(self, timeout: float | None = None) -> Any:
        """The answer, once the job has ended. Raises CallError where it failed or was cancelled, or TimeoutError."""
        return self.answer(timeout).value

    def answer(self, timeout: float | None = None) -> CallAnswer:
        """As `result`, with everything that is known about the answer."""
        return answer_of(self._client._drive(self._steps.answer(timeout)))

    def events(self, after: str = "") -> Iterator[JobEvent]:
        """What happens to the job, from its beginning or behind an event, until its end. Raises CallError.

        A connection that is lost is made again, and the events go on behind the last one.
        """
        reader, first = EventReader(after), True
        while not reader.ended:
            response = self._client._drive(self._steps.events(reader, first))
            first = False
            try:
                for line in response.iter_lines():
                    yield from reader.feed(line)
            except httpx.HTTPError:
                continue
            finally:
                response.close()

    def cancel(self) -> dict[str, Any]:
        """Cancel the job, and return it. Of one that has ended, the answer is removed. Raises CallError."""
        return self._client._drive(self._steps.state("DELETE"))


class AsyncJobHandle:
    """A job of a server, as `AsyncClient.submit` gives it: as `JobHandle`, with `await`."""

    def __init__(self, client: AsyncClient, name: str, steps: JobSteps) -> None:
        self.id = name
        self._client = client
        self._steps = steps

    def __repr__(self) -> str:
        return f"AsyncJobHandle({self.id!r})"

    async def state(self) -> dict[str, Any]:
        """The job as it is: `state`, `progress`, `attempts`, times, `error`. Raises CallError."""
        return await self._client._drive(self._steps.state())

    async def result(self, timeout: float | None = None) -> Any:  # noqa: ASYNC109  as JobHandle has it
        """The answer, once the job has ended. Raises CallError where it failed or was cancelled, or TimeoutError."""
        return (await self.answer(timeout)).value

    async def answer(self, timeout: float | None = None) -> CallAnswer:  # noqa: ASYNC109  likewise
        """As `result`, with everything that is known about the answer."""
        return answer_of(await self._client._drive(self._steps.answer(timeout)))

    async def events(self, after: str = "") -> AsyncIterator[JobEvent]:
        """What happens to the job, from its beginning or behind an event, until its end. Raises CallError.

        A connection that is lost is made again, and the events go on behind the last one.
        """
        reader, first = EventReader(after), True
        while not reader.ended:
            response = await self._client._drive(self._steps.events(reader, first))
            first = False
            try:
                async for line in response.aiter_lines():
                    for event in reader.feed(line):
                        yield event
            except httpx.HTTPError:
                continue
            finally:
                await response.aclose()

    async def cancel(self) -> dict[str, Any]:
        """Cancel the job, and return it. Of one that has ended, the answer is removed. Raises CallError."""
        return await self._client._drive(self._steps.state("DELETE"))
