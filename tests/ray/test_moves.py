"""Calls whose placement is lost: which are moved, how often, and what those are told that are not."""

from __future__ import annotations

import json
import os
import re
import signal

import httpx
import pytest

from support.on_nodes import LONG, agents, on_nodes, ready, workers
from support.ray_cluster import RayCluster
from support.server import Server, wait_until
from support.traffic import Answer, send

pytestmark = pytest.mark.timeout(400)
PACKAGE = "slow_on_nodes"
PATIENT = ("--timeout", "600s")


def begun(server: Server, item: int) -> int:
    """How often the script has said that it begins with an item; the last words of a worker are another line."""
    return len(re.findall(rf"\| item {item} begins", server.log))


def kill(*pids: int) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


def is_lost_placement(answer: Answer) -> bool:
    return (answer.status, answer.code, answer.headers["retry-after"]) == (503, "place_lost", "1")


def test_a_call_is_moved_three_times_and_never_suspected(inside: RayCluster) -> None:
    """A worker that ends just before its placement is lost with it: its call would be guilty at the second time."""
    with on_nodes(inside, *PATIENT, path=PACKAGE, workers=1) as server:
        slow = send(server, {"id": 7, "before": 600}, patience=300)
        for time in range(1, 5):
            wait_until(lambda time=time: begun(server, 7) == time, LONG, lambda: server.log)
            assert not slow.done()
            kill(*workers(inside), *agents(inside))
        wait_until(slow.done, LONG, lambda: server.log)
        assert is_lost_placement(slow.result())
        assert server.metric("panglot_reruns_total", reason="place_lost") == 3
        assert server.metric("panglot_reruns_total", reason="worker_died") == 0
        assert server.predict({"id": 8}).json() == {"id": 8}


def test_streams_that_have_begun_end_and_others_are_moved(inside: RayCluster) -> None:
    with on_nodes(inside, path=PACKAGE, workers=2) as server:
        later = send(server, {"id": 1, "before": 3, "parts": 3})
        wait_until(lambda: begun(server, 1) == 1)
        with server.client.stream("POST", "/predict", json={"id": 2, "parts": 600, "between": 1}) as answer:
            assert answer.status_code == 200
            parts = answer.iter_lines()
            assert '"part":0' in next(parts).replace(" ", "")
            kill(*agents(inside))
            with pytest.raises(httpx.RemoteProtocolError):
                list(parts)
        lines = [line for line in later.result(LONG).body.decode().splitlines() if line]
        assert [json.loads(line.removeprefix("data: "))["part"] for line in lines] == [0, 1, 2]
        wait_until(lambda: begun(server, 1) == 2)
        wait_until(lambda: ready(server) == 2, LONG, lambda: server.log)


def test_without_reruns_only_calls_that_ran_fail(inside: RayCluster) -> None:
    with on_nodes(inside, *PATIENT, "--no-rerun", path=PACKAGE, workers=1) as server:
        running = send(server, {"id": 1, "before": 600}, patience=300)
        wait_until(lambda: begun(server, 1) == 1)
        waiting = [send(server, {"id": number}) for number in (2, 3)]
        wait_until(lambda: server.metric("panglot_requests_in_progress") == 3)
        kill(*agents(inside))
        assert is_lost_placement(running.result(LONG))
        assert [answer.result(LONG).json() for answer in waiting] == [{"id": 2}, {"id": 3}]
        wait_until(lambda: [begun(server, number) for number in (1, 2, 3)] == [1, 1, 1])
