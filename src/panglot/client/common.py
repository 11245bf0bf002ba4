"""What both clients are: an address, a policy, and how a step becomes a request of httpx."""

from __future__ import annotations

from typing import Any

import httpx

from panglot.client.attempts import CallPolicy, Send
from panglot.client.requests import Address
from panglot.inputs.base import About


class CallerBase:
    """Calls a server; connections are kept open.

    `timeout` is the longest a call may take, with all attempts; `connect_timeout` how long a server that cannot be
    reached is tried. With `retry`, a call whose connection is lost is sent again, and so may run twice. `token` is the
    caller's PANGLOT_TOKEN unless it is given; `dialect` and `field` say what the server does not.
    """

    def __init__(
        self, url: str, *, token: str | None = None, timeout: float = 60.0, connect_timeout: float = 10.0,
        retry: bool = False, dialect: str = "", field: str = "", verify: Any = True,
    ) -> None:  # fmt: skip
        self._address = Address(url, token)
        self._policy = CallPolicy(timeout, connect_timeout, retry)
        self._said = (dialect, field)
        self._verify = verify
        self._about: About | None = None
        self._open()

    def _open(self) -> None:
        raise NotImplementedError

    def _options(self) -> dict[str, Any]:
        """What a client of httpx is made with, besides its transport."""
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=100)
        address = self._address
        return {"base_url": address.base, "headers": address.headers, "limits": limits, "verify": self._verify}

    def _request(self, http: httpx.Client | httpx.AsyncClient, step: Send) -> httpx.Request:
        request, timeout = step.request, step.timeout(self._policy)
        content = request.body or None
        return http.build_request(
            request.method, request.path, headers=request.headers, content=content, timeout=timeout
        )
