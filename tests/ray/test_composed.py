"""Models on nodes that call each other: ensembles and scripts, as on one machine, with all tensors on the wire."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy
import pytest

from support.models import all_of
from support.ray_cluster import RayCluster
from support.server import ROOT, Server, serving, wait_until

pytestmark = pytest.mark.timeout(600)
TRITON = ROOT / "tests" / "triton"
COUNT = 150_000
REFUSE, DIE = -20, -30
FLAGS = ("--worker-resources", "cpu=0.1", "--python", sys.executable, "--load-at-once", "4")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    shutil.copytree(TRITON / "large", folder, dirs_exist_ok=True)
    for name in ("counter", "shout", "speech"):
        shutil.copytree(TRITON / "composed" / name, folder / name)
    return folder


@pytest.fixture
def server(folder: Path, inside: RayCluster) -> Iterator[Server]:
    with serving(all_of(folder), *inside.flags, *FLAGS, ready=False) as started:
        started.wait_ready(240)
        yield started


def asked(server: Server, model: str, values: Any) -> Any:
    raw, name = values.tobytes(), "IN" if model == "chain" else "X"
    tensor = {"name": name, "datatype": "FP32", "shape": [len(values)], "parameters": {"binary_data_size": len(raw)}}
    text = json.dumps({"inputs": [tensor], "parameters": {"binary_data_output": True}}).encode()
    headers = {"inference-header-content-length": str(len(text))}
    return server.client.post(f"/v2/models/{model}/infer", content=text + raw, headers=headers, timeout=120)


def first_output(answer: Any) -> Any:
    assert answer.status_code == 200, answer.text
    length = int(answer.headers["inference-header-content-length"])
    return numpy.frombuffer(answer.content[length : length + 4 * COUNT], "float32")


def test_models_on_nodes_call_each_other(server: Server) -> None:
    values = numpy.arange(COUNT, dtype="float32")
    for model in ("chain", "caller"):
        assert numpy.array_equal(first_output(asked(server, model, values))[1:], values[1:] + 111)
        refused = asked(server, model, numpy.full(COUNT, REFUSE - 10, "float32"))
        assert (refused.status_code >= 400, "not that" in refused.text) == (True, True)
        died = asked(server, model, numpy.full(COUNT, DIE - 10, "float32"))
        assert (died.status_code >= 400, "died" in died.text) == (True, True)
    with server.client.stream("POST", "/v2/models/speech/generate_stream", json={"N": 3}) as answer:
        said = [json.loads(line[6:])["said"] for line in answer.iter_lines() if line.startswith("data: ")]
    assert said == [f"TOKEN {at} OF 3" for at in range(3)]
    under_way = threading.Event()

    def ask(number: int) -> bool:
        if number == 10:
            under_way.set()
        return numpy.array_equal(first_output(asked(server, "chain", values + number))[1:], values[1:] + number + 111)

    with ThreadPoolExecutor(4) as crowd:
        right = crowd.map(ask, range(40))
        assert under_way.wait(60)
        kill(server, "second")
        assert all(right)


def kill(server: Server, model: str) -> None:
    def pids() -> list[int]:
        workers = server.client.get("/status.json").json()["workers"]
        return [int(one["pid"]) for one in workers if one["model"] == model and one["state"] == "ready"]

    wait_until(lambda: bool(pids()), 60)
    os.kill(pids()[0], signal.SIGKILL)
