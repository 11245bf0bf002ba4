"""Requests on threads of their own, so that a test can do harm while they wait."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.server import Server, wait_until

SOAK = bool(os.environ.get("PANGLOT_SOAK"))
AT_ONCE = 15.0
"""Seconds within which an answer counts as given at once. Tests that rely on it set far longer timeouts."""


def times(usual: int, soak: int) -> int:
    """How often to repeat: the usual count, or that of `make soak`."""
    return soak if SOAK else usual


def rounds(usual: int = 1, soak: int = 50) -> list[random.Random]:
    """One seeded source of random moments for every repetition of a fault."""
    return [random.Random(number) for number in range(times(usual, soak))]


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes
    seconds: float

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """The code of an error."""
        return str(self.json()["error"]["code"])


class Caller:
    """One keep-alive connection."""

    def __init__(self, server: Server, patience: float = 60) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=patience)
        self._asked = 0.0

    def post(self, value: Any, timeout_ms: float = 0) -> Answer:
        self.ask(value, timeout_ms)
        return self.answer()

    def ask(self, value: Any, timeout_ms: float = 0) -> None:
        headers = {"Content-Type": "application/json"}
        if timeout_ms:
            headers["X-Timeout-Ms"] = f"{timeout_ms:g}"
        self._asked = time.monotonic()
        self.connection.request("POST", "/predict", json.dumps(value), headers)

    def answer(self) -> Answer:
        response = self.connection.getresponse()
        body = response.read()
        names = {name.lower(): text for name, text in response.getheaders()}
        return Answer(response.status, names, body, time.monotonic() - self._asked)

    def __enter__(self) -> Caller:
        return self

    def __exit__(self, *exc: object) -> None:
        self.connection.close()


def on_a_thread(work: Callable[[], Answer]) -> Future[Answer]:
    future: Future[Answer] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future


def send(server: Server, value: Any, timeout_ms: float = 0, patience: float = 60) -> Future[Answer]:
    """Ask without waiting, on a connection that ends with the answer."""

    def ask() -> Answer:
        with Caller(server, patience) as caller:
            return caller.post(value, timeout_ms)

    return on_a_thread(ask)


def burst(server: Server, values: Sequence[Any]) -> list[Future[Answer]]:
    """Ask such that all requests reach the front in one turn of its loop."""
    callers = [Caller(server) for _ in values]
    for caller in callers:
        caller.connection.connect()
    assert server.client.get("/v2/health/live").status_code == 200
    with stopped(server):
        for caller, value in zip(callers, values, strict=True):
            caller.ask(value)

    def hear(caller: Caller) -> Answer:
        with caller:
            return caller.answer()

    return [on_a_thread(lambda caller=caller: hear(caller)) for caller in callers]


@contextlib.contextmanager
def stopped(server: Server) -> Iterator[None]:
    """A front that stands still: requests and answers pile up before it."""
    server.process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        server.process.send_signal(signal.SIGCONT)


def answers(server: Server, sent: Iterable[Future[Answer]], seconds: float = AT_ONCE) -> list[Answer]:
    """All answers, in the order of the requests; they must be there within the given time."""
    futures = list(sent)
    missing = wait(futures, seconds).not_done
    assert not missing, f"{len(missing)} of {len(futures)} not answered after {seconds} s:\n{server.log}"
    return [future.result() for future in futures]


def ask_all(server: Server, values: Sequence[Any], seconds: float = AT_ONCE) -> list[Answer]:
    return answers(server, [send(server, value) for value in values], seconds)


class Gate:
    """A file that a script waits for."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __str__(self) -> str:
        return str(self.path)

    def open(self) -> None:
        self.path.touch()

    def holding(self, id: int) -> dict[str, Any]:
        """An item that keeps a worker busy until the gate is opened."""
        return {"id": id, "op": "wait", "gate": str(self.path)}


def occupy(server: Server, gate: Gate, id: int) -> Future[Answer]:
    """Keep the only worker busy until the gate is opened."""
    mark = len(server.lines)
    plug = send(server, gate.holding(id))
    server.wait_log(rf"item {id} waits", after=mark)
    return plug


def occupy_stage(server: Server, gate: Gate, id: int, stage: str) -> Future[Answer]:
    """Keep one worker of a stage of `row_script` busy until the gate is opened."""
    mark = len(server.lines)
    plug = send(server, {"id": id, stage: "wait", "gate": str(gate)})
    server.wait_log(rf"item {id} waits in {stage}", after=mark)
    return plug


def send_as_batch(server: Server, gate: Gate, values: Sequence[Any]) -> list[Future[Answer]]:
    """Ask such that all values share one batch: they queue up, in order, behind the only worker of the server."""
    plug = occupy(server, gate, 1_000_000)
    sent = []
    for number, value in enumerate(values, 1):
        sent.append(send(server, value))
        wait_until(lambda number=number: server.metric("panglot_queue_length") == number)
    gate.open()
    answers(server, [plug])
    return sent
