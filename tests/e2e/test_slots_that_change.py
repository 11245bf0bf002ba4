"""A script whose functions are awaited may run more calls at once, or fewer, while it serves."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from support.distributions import DISTRIBUTIONS, install
from support.server import Server, serving

BENCH = """
import asyncio
import os

import workshop

running = most = 0


async def handler(value):
    global running, most
    if value.get("slots"):
        most = 0
        return value
    running += 1
    most = max(most, running)
    print("running", value.get("name"))
    while most < value.get("together", 0):
        await asyncio.sleep(0.01)
    await asyncio.sleep(value.get("sleeps", 0))
    running -= 1
    return {"most": most, "pid": os.getpid(), **value}


workshop.start({"handler": handler})
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("workshop")
    install(DISTRIBUTIONS / "workshop", folder / "outside")
    package = folder / "calls"
    package.mkdir()
    (package / "bench.py").write_text(BENCH)
    with serving(package, "--workers", "1", env={"PYTHONPATH": str(folder / "outside")}) as server:
        yield server


def work(server: Server, **order: Any) -> Any:
    response = server.client.post("/work", json=order)
    assert response.status_code == 200, response.text
    return response.json()


def at_once(server: Server, count: int, **order: Any) -> list[Any]:
    with ThreadPoolExecutor(count) as clients:
        orders = [clients.submit(work, server, name=str(number), **order) for number in range(count)]
        return [order.result() for order in orders]


def test_as_many_calls_run_at_once_as_the_script_last_said(server: Server) -> None:
    for slots in (1, 4, 2, 1, 3):
        work(server, slots=slots)
        # Nobody returns before so many have run at once; then a moment is left in which more might.
        answers = at_once(server, 6, sleeps=0.15, together=slots)
        assert max(answer["output"]["most"] for answer in answers) == slots


def test_output_is_captured_only_while_one_call_runs_at_a_time(server: Server) -> None:
    work(server, slots=1)
    assert [answer["printed"] for answer in at_once(server, 2)] == ["running 0\n", "running 1\n"]
    work(server, slots=2)
    assert [answer["printed"] for answer in at_once(server, 2)] == ["", ""]


def test_a_worker_that_runs_several_calls_is_replaced_when_all_have_their_answers(server: Server) -> None:
    work(server, slots=3)
    before = work(server)["output"]["pid"]
    with ThreadPoolExecutor(3) as clients:
        mark = len(server.lines)
        slow = [clients.submit(work, server, name=name, sleeps=1) for name in ("first", "second")]
        server.wait_log("running first", after=mark)
        server.wait_log("running second", after=mark)
        work(server, replace="a fresh one is wanted")
        assert {order.result()["output"]["pid"] for order in slow} == {before}
    assert work(server)["output"]["pid"] != before
