"""Lent calls whose first answer is not the last: what they name is fetched, or another worker is tried."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from support.evals import package, returning, single
from support.fronts import client_of
from support.scripted import Scripted, scripted, simple
from support.server import serving, wait_until

FRONTS = ("--fronts", "2", "--workers", "2")
GATED = """
import os
import time


def answered(req):
    gate = req.get("params", {}).get("gate")
    if gate:
        open(gate + ".begun", "w").close()
        while not os.path.exists(gate):
            time.sleep(0.005)
    return {"pid": os.getpid(), "body": req["data"]["body"].decode()}
"""
REFUSED = """
import os


def code(folder):
    '''The first worker that is called is the one that cannot.'''
    path = os.path.join(folder, "refuses")
    try:
        with open(path, "x") as file:
            file.write(str(os.getpid()))
    except FileExistsError:
        pass
    return 571 if open(path).read() == str(os.getpid()) else 0
"""


@pytest.fixture
def other() -> Iterator[Scripted]:
    with scripted({"/a": simple(b"from elsewhere")}) as running:
        yield running


def result(client: httpx.Client, value: object) -> dict[str, object]:
    answer = client.post("/v1/eval", json=value)
    assert answer.status_code == 200, answer.text
    return dict(answer.json()["result"])


def test_what_a_lent_call_names_is_fetched(other: Scripted, tmp_path: Path) -> None:
    ret = "{'code': 0, 'message': '', 'result': answered(req)}"
    folder = package(tmp_path / "package", returning(f"[{ret} for req in reqs], 0, ''", GATED))
    with serving(folder, *FRONTS, "--url-allow", other.host) as server, ThreadPoolExecutor(1) as threads:
        first, second = (client_of(server, 0) for _ in range(2))
        gate = tmp_path / "gate"
        busy = threads.submit(result, first, single(params={"gate": str(gate)}))
        wait_until(Path(f"{gate}.begun").exists)
        before = server.metric("panglot_calls_lent_total", front="0")
        answers = [result(second, {"data": {"uri": other.url("/a")}}) for _ in range(3)]
        gate.touch()
        assert {answer["body"] for answer in answers} == {"from elsewhere"}
        assert busy.result()["pid"] not in {answer["pid"] for answer in answers}
        assert server.metric("panglot_calls_lent_total", front="0") == before + 3


def test_another_worker_is_tried_whichever_front_is_asked(tmp_path: Path) -> None:
    ret = f"{{'code': code({str(tmp_path)!r}), 'message': 'overload', 'result': len(req['data']['body'])}}"
    script = returning(f"[{ret} for req in reqs], 0, ''", REFUSED)
    folder = package(tmp_path / "package", script, panglot__toml="[evals]\nretry_57x = 1\n")
    with serving(folder, *FRONTS) as server:
        for front in (0, 1):
            client = client_of(server, front)
            for _ in range(6):
                answer = client.post("/v1/eval", json=single(b"x" * 300_000))
                assert (answer.status_code, answer.json().get("result")) == (200, 300_000)
        assert server.metric("panglot_reruns_total", reason="retried") > 0
