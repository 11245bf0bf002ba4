"""What a dialect may do in a call beyond answering: show what was printed, blame the script, replace its worker."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from panglot import dialects
from panglot.engine.call import CallProgress
from panglot.packages.package import Package
from panglot.settings import Settings
from panglot.tools.run.offline import Waiting, offline
from panglot_worker.line import wire
from support.distributions import DISTRIBUTIONS, install
from support.server import Server, serving, wait_until
from support.well import Left

BENCH = """
import os
import sys

import workshop


def read(value):
    if value.get("fails") == "input":
        raise KeyError("input_fn")
    if value.get("fails") == "exit":
        os._exit(5)
    return value


def handler(value):
    for _ in range(value.get("prints", 0)):
        print("hello", value.get("name", ""))
    if value.get("prints"):
        print("careful", file=sys.stderr)
    if value.get("fails") == "handler":
        raise ValueError("no")
    return {"pid": os.getpid(), **value}


def write(output):
    if output.get("fails") == "output":
        raise IndexError("output_fn")
    return output


if __name__ == "__main__":
    workshop.start({"handler": handler, "input": read, "output": write})
    raise SystemError("this never runs")
"""


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("workshop")
    install(DISTRIBUTIONS / "workshop", folder / "outside")
    return folder


@pytest.fixture(scope="module")
def server(outside: Path) -> Iterator[Server]:
    package = outside / "calls"
    package.mkdir()
    (package / "bench.py").write_text(BENCH)
    flags = ("--workers", "1", "--sick-after", "3", "--no-rerun")
    with serving(package, *flags, env={"PYTHONPATH": str(outside / "outside")}, leaves=Left.TRACEBACKS) as server:
        yield server


def work(server: Server, **order: Any) -> Any:
    response = server.client.post("/work", json=order)
    assert response.status_code == 200, response.text
    return response.json()


def test_what_a_call_prints_is_there_for_its_answer_and_in_the_log(server: Server) -> None:
    answer = work(server, prints=2, name="seen")
    assert answer["printed"] == "hello seen\nhello seen\ncareful\n"
    server.wait_log("hello seen")
    assert work(server)["printed"] == "", "the next call has its own"


def test_captured_output_is_capped_and_its_end_is_kept(server: Server) -> None:
    printed = work(server, prints=100, name="n")["printed"]
    assert printed.startswith("[...]\n")
    assert printed.endswith("hello n\ncareful\n")
    assert len(printed) == 100 + len("[...]\n")


def test_a_failure_of_the_scripts_own_input_function_is_the_scripts(server: Server) -> None:
    mark = len(server.lines)
    response = server.client.post("/work", json={"fails": "input"})
    assert (response.status_code, response.json()["error"]["code"]) == (500, "script_error")
    server.wait_log("KeyError: 'input_fn'", after=mark)


def test_a_failure_of_the_scripts_own_output_function_is_the_scripts(server: Server) -> None:
    mark = len(server.lines)
    response = server.client.post("/work", json={"fails": "output"})
    assert (response.status_code, response.json()["error"]["code"]) == (500, "script_error")
    server.wait_log("IndexError: output_fn", after=mark)


def test_a_body_that_we_cannot_read_is_the_clients(server: Server) -> None:
    mark = len(server.lines)
    response = server.client.post("/work", content=b"{", headers={"Content-Type": "application/json"})
    assert response.status_code == 400
    assert work(server)["output"]
    assert "Traceback" not in server.log_after(mark)


def test_an_input_function_that_kills_the_worker_costs_its_call_alone(server: Server) -> None:
    response = server.client.post("/work", json={"fails": "exit"})
    assert (response.status_code, response.json()["error"]["code"]) == (500, "worker_died")
    assert work(server)["output"]


def test_an_input_function_that_always_fails_makes_the_worker_sick(server: Server) -> None:
    work(server)
    mark, retired, sick = len(server.lines), restarts(server, "retired"), server.workers()
    for _ in range(3):
        server.client.post("/work", json={"fails": "input"})
    server.wait_log("3 calls in a row have raised KeyError and none has succeeded", after=mark)
    # It serves until its successor is ready: the next test must not find both.
    wait_until(lambda: restarts(server, "retired") == retired + 1 and not set(sick) & set(server.workers()))


def test_a_call_may_have_its_worker_replaced_which_counts_as_no_failure(server: Server) -> None:
    before, deaths = work(server)["output"]["pid"], restarts(server, "died")
    mark, retired = len(server.lines), restarts(server, "retired")
    assert work(server, replace="a fresh one is wanted")["output"]["pid"] == before
    assert work(server)["output"]["pid"] != before
    server.wait_log("is replaced: a fresh one is wanted", after=mark)
    assert (restarts(server, "died"), restarts(server, "retired")) == (deaths, retired + 1)
    assert not re.search("ERROR|WARNING", server.log_after(mark))


def test_calls_that_were_sent_ahead_run_in_the_next_worker(server: Server) -> None:
    """Several clients at once, of which each asks for a fresh worker: nobody shares one, and nobody is lost."""
    work(server)
    with ThreadPoolExecutor(6) as clients:
        orders = [clients.submit(work, server, replace="each has its own") for _ in range(6)]
        pids = [order.result()["output"]["pid"] for order in orders]
    assert len(set(pids)) == 6


def restarts(server: Server, reason: str) -> int:
    found = re.search(
        rf'panglot_worker_restarts_total{{.*reason="{reason}".*}} (\d+)', server.client.get("/metrics").text
    )
    return int(found[1]) if found else 0


# Through the engine: what a call is told while it runs

REPORTING = """
import time

from panglot import progress


def predict(request):
    for step in range(4):
        progress(step / 4, {"step": step})
        time.sleep(0.06)
    try:
        progress(2)
    except ValueError as error:
        return str(error)
"""


class Watching(Waiting):
    """A call that keeps what it hears."""

    __slots__ = ("heard", "output")

    def __init__(self) -> None:
        super().__init__(b"watching")
        self.heard: list[CallProgress] = []
        self.output: list[tuple[str, str]] = []

    def report(self, progress: CallProgress) -> None:
        self.heard.append(progress)

    def printed(self, source: str, text: str) -> None:
        self.output.append((source, text))


def watched(package: Package, route: str, body: bytes) -> Watching:
    """One call of a package, run by an engine alone."""

    async def run() -> Watching:
        async with offline(package, Settings()) as loaded:
            engine, call = loaded.engine, Watching()
            call.head = wire.Head(call.request_id, route.encode(), b"application/json").pack()
            call.pieces, call.size = [body], len(body)
            call.arrived = engine.clock()
            call.deadline = call.arrived + 30
            assert engine.submit(call) is None
            answer = await call.answer
            assert answer.status == 200, answer
            return call

    return asyncio.run(run())


def test_a_script_tells_how_far_it_is_and_the_last_report_counts(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(REPORTING)
    call = watched(dialects.discover(tmp_path), "/predict", b"{}")
    assert call.heard[0] == CallProgress(0, {"step": 0})
    assert call.heard[-1] == CallProgress(0.75, {"step": 3})
