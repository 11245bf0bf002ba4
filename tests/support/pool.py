"""Servers that tests share one after the other, by package and flags: to start one costs more than most tests."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from support import well
from support.server import Server, serving, wait_until

Lend = Callable[..., contextlib.AbstractContextManager[Server]]
"""What tests have of a pool."""
MOST = 6
"""Servers that wait for the next test, in one process of tests."""


class Pool:
    """Lends servers to tests that leave them as they were: ready, with all workers, and holding nothing."""

    def __init__(self, failing: Mapping[str, Any]) -> None:
        """`failing` has a request that fails for each package: that it is in the log shows that all before it is."""
        self._failing = failing
        self._numbers = itertools.count(1)
        self._waiting: dict[tuple[str, ...], tuple[Server, contextlib.ExitStack]] = {}

    @contextlib.contextmanager
    def lend(self, package: str, *flags: str) -> Iterator[Server]:
        """A server as if it had just been started. One whose test fails is not lent again."""
        server, stack = self._waiting.pop((package, *flags), None) or self._start(package, *flags)
        workers = len(server.workers())
        with stack:
            yield server
            well.check(server)
            server.begin_anew()
            wait_until(lambda: server.ready() == 200 and len(server.workers()) == workers)
            self._hear_all(server, package)
            server.begin_anew()
            self._waiting[package, *flags] = server, stack.pop_all()
        while len(self._waiting) > MOST:
            self._waiting.pop(next(iter(self._waiting)))[1].close()

    def _start(self, package: str, *flags: str) -> tuple[Server, contextlib.ExitStack]:
        stack = contextlib.ExitStack()
        server = stack.enter_context(serving(package, *flags))
        wanted = int(flags[flags.index("--workers") + 1]) if "--workers" in flags else 1
        # The server is ready with its first worker, and the others may not even have been started then.
        wait_until(lambda: len(server.workers()) >= wanted)
        return server, stack

    def _hear_all(self, server: Server, package: str) -> None:
        """Wait until nothing more can come into the log of what the test has done."""
        mark = f"returned-{next(self._numbers)}"
        answer = server.predict(self._failing[package], headers={"x-request-id": mark})
        assert answer.status_code == 500, answer.text
        server.wait_log(mark)

    def close(self) -> None:
        """End all servers that wait."""
        while self._waiting:
            self._waiting.popitem()[1][1].close()
