"""A server of one platform under test, asked as the platform's clients ask."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from contract.platform import ID, Asked, Order, Platform
from support.distributions import install
from support.server import Server, wait_until
from support.traffic import AT_ONCE, Gate, on_a_thread

PACKAGES = Path(__file__).parent / "packages"
TOKEN = "a-token-of-the-contract-suite"
BEARER = {"authorization": f"Bearer {TOKEN}"}

Way = Callable[..., AbstractContextManager[Server]]
"""How a server is started: from a path, flags, and the keywords of `support.server.serving`."""


@dataclass(frozen=True)
class Desk:
    """A server, and what is expected of it."""

    platform: Platform
    server: Server
    client: httpx.Client
    """Without the token, which every request brings along."""

    def ask(self, order: Order, headers: Mapping[str, str] = BEARER) -> httpx.Response:
        return self.send(self.platform.ask(order), headers)

    def send(self, asked: Asked, headers: Mapping[str, str] = BEARER) -> httpx.Response:
        lines = {"content-type": asked.type, "x-request-id": ID, **headers}
        return self.client.post(asked.path, content=asked.body, headers=lines)

    def get(self, path: str, method: str = "GET") -> httpx.Response:
        return self.client.request(method, path, headers={"x-request-id": ID})

    def later(self, asked: Asked) -> Future[httpx.Response]:
        return on_a_thread(lambda: self.send(asked))

    def occupy(self, gate: Gate) -> Future[httpx.Response]:
        """Keep the only worker busy until the gate is opened."""
        mark = len(self.server.lines)
        plug = self.later(self.platform.ask({"id": 1000, "op": "wait", "gate": str(gate)}))
        self.server.wait_log("order 1000 waits", after=mark)
        return plug

    def together(self, gate: Gate, requests: list[Asked]) -> list[httpx.Response]:
        """The answers to requests that are all there before the first of them can be taken."""
        plug = self.occupy(gate)
        sent = []
        for number, asked in enumerate(requests, 2):
            sent.append(self.later(asked))
            wait_until(lambda number=number: self.in_progress() == number)
        gate.open()
        answers = [future.result(AT_ONCE) for future in (plug, *sent)]
        assert self.right(1000, answers[0])
        return answers[1:]

    def in_progress(self) -> float:
        if self.platform.stores_jobs:
            return sum(self.server.metric("panglot_jobs", state=state) for state in ("queued", "running"))
        return self.server.metric("panglot_requests_in_progress")

    def deaths(self) -> float:
        return self.server.metric("panglot_worker_restarts_total", reason="died")

    def right(self, number: int, answer: httpx.Response) -> bool:
        """Whether this is the answer to an order; fails with the difference where it is not."""
        return self.platform.answer(number, 2 * number).fits(answer)


@dataclass(frozen=True)
class Opener:
    """Starts servers of one platform in one way."""

    platform: Platform
    way: Way
    folder: Path

    @contextmanager
    def __call__(self, *flags: str, env: Mapping[str, str] | None = None, **options: Any) -> Iterator[Desk]:
        """A server for as long as the context."""
        environment = {**self.platform.env, **(env or {})}
        if self.platform.outside is not None:
            environment["PYTHONPATH"] = str(self.folder / "outside")
        path = self.folder / self.platform.package / self.platform.file
        if self.platform.python is not None:
            flags = (*flags, "--python", self.platform.python())
        with self.way(path, *flags, env=environment, **options) as server, server.new_client() as client:
            server.client.headers.update(BEARER)
            yield Desk(self.platform, server, client)

    @contextmanager
    def loading_after(self, gate: Gate) -> Iterator[None]:
        """Packages that are loaded meanwhile wait for the gate. A file says so: nodes have variables of their own."""
        said = self.folder / self.platform.package / "load_after.txt"
        said.write_text(str(gate))
        yield
        said.unlink()


def unpack(platform: Platform, folder: Path) -> None:
    """Write the package, whole, into a folder, and beside it what its dialect comes from."""
    package = folder / platform.package
    shutil.copytree(PACKAGES / platform.package, package)
    shutil.copy(PACKAGES / "acts.py", package)
    if platform.outside is not None:
        install(platform.outside, folder / "outside")
