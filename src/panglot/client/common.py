"""The steps of both clients: which requests they send, in which order, and when they give up.

The steps are generators. Nothing here sends or sleeps: `Client` and `AsyncClient` drive the steps, each in its own way.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import Any, ClassVar

import httpx

from panglot.client.attempts import CallPolicy, Outgoing, Send, Steps, attempts
from panglot.client.errors import CallError, of_exception
from panglot.client.jobs import JobSteps, as_job
from panglot.client.requests import NOT_FOUND, READY, Address, outgoing
from panglot.inputs.base import About


class CallerBase:
    """Connections stay open between calls, and a server that is full or loading is asked again.

    `timeout` is the longest that a call may take in seconds, with all attempts. `connect_timeout` is how long the
    client tries to reach the server. With `retry`, a call is also sent again after a lost connection, so it may run
    twice. `token` is PANGLOT_TOKEN of the environment unless you give one. `verify` is passed to httpx: False, or the
    certificates to trust. `dialect` and `field` are for servers that do not describe themselves.
    """

    _make_http: ClassVar[Callable[..., Any]]
    _make_transport: ClassVar[Callable[..., Any]]
    """The classes of httpx that a client uses."""
    _http: Any

    def __init__(
        self, url: str, *, token: str | None = None, timeout: float = 60.0, connect_timeout: float = 10.0,
        retry: bool = False, dialect: str = "", field: str = "", verify: Any = True,
    ) -> None:  # fmt: skip
        self._address = Address(url, token)
        self._policy = CallPolicy(timeout, connect_timeout, retry)
        self._said = (dialect, field)
        self._about: About | None = None
        self._http = self._make_http(
            transport=self._make_transport(uds=self._address.socket) if self._address.socket else None,
            base_url=self._address.base,
            headers=self._address.headers,
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=100),
            verify=verify,
        )

    def _calling(self, given: Any, values: dict[str, Any], whole: bool = True) -> Steps[httpx.Response]:
        """Get the answer to an input. Raises CallError, and ValueError for an input that cannot be sent."""
        about = yield from self._learning()
        return (yield from self._sending(outgoing(about, given, values), whole))

    def _submitting(self, given: Any, values: dict[str, Any], key: str, webhook: str) -> Steps[httpx.Response]:
        """Submit an input as a job. `name_of` tells the id. Raises CallError, and ValueError as `_calling`.

        Only an error is read: a route that makes no jobs may answer with a long stream.
        """
        about = yield from self._learning()
        request = as_job(outgoing(about, given, values), key, webhook)
        # Also where the policy forbids it: by its key, the second request is the same job.
        policy = dataclasses.replace(self._policy, retry=True)
        return (yield from attempts(request, policy, self._address.url, time.monotonic, whole=False))

    def _job_steps(self, name: str) -> JobSteps:
        return JobSteps(name, self._policy, self._address.url)

    def _learning(self) -> Steps[About]:
        """Read what the server says about itself, once, as soon as its script is loaded. Raises CallError."""
        # Two threads may come here at the same time. They read the same documents, which does no harm.
        if self._about is None:
            # Before the document: only a script that is loaded has told all about itself.
            yield from self._sending(READY)
            for document in self._address.documents:
                response = yield from self._sending(document)
                if response.status_code != NOT_FOUND:
                    break
            self._about = self._address.described(document, response, *self._said)
        return self._about

    def _sending(self, request: Outgoing, whole: bool = True) -> Steps[httpx.Response]:
        return attempts(request, self._policy, self._address.url, time.monotonic, whole)

    def _request(self, step: Send) -> httpx.Request:
        """The request of httpx for a step."""
        request, timeout = step.request, step.timeout(self._policy)
        content = request.body or None
        made: httpx.Request = self._http.build_request(
            request.method, request.path, headers=request.headers, content=content, timeout=timeout
        )
        return made

    def _lost(self, error: httpx.HTTPError, response: httpx.Response) -> CallError:
        """The error for a stream that broke off."""
        return of_exception(error, self._address.url, response.headers.get("x-request-id", ""))
