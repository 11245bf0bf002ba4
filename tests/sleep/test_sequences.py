"""A model that remembers sequences sleeps and wakes: each sequence has a worker again while the old ones still end."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx

from support.server import Server, serving

CONFIG = """
backend: "python"
max_batch_size: 4
input [ { name: "X" data_type: TYPE_INT32 dims: [ 1 ] } ]
output [ { name: "Y" data_type: TYPE_INT32 dims: [ 1 ] } ]
sequence_batching { direct { } max_sequence_idle_microseconds: 100000 }
"""
MODEL = """
import time

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        given = [pb_utils.get_input_tensor_by_name(request, "X").as_numpy() for request in requests]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", 2 * each)]) for each in given]

    def finalize(self):
        time.sleep(3)
"""


def package(folder: Path) -> Path:
    (folder / "1").mkdir(parents=True)
    (folder / "1" / "model.py").write_text(MODEL)
    (folder / "config.pbtxt").write_text(CONFIG)
    return folder


def whole(server: Server, name: int) -> httpx.Response:
    """A sequence of one request."""
    tensor = {"name": "X", "shape": [1, 1], "datatype": "INT32", "data": [name]}
    parameters = {"sequence_id": name, "sequence_start": True, "sequence_end": True}
    body = {"inputs": [tensor], "parameters": parameters}
    return server.client.post("/v2/models/doubling/infer", json=body, timeout=60)


def test_sequences_find_their_workers_after_a_quick_wake(tmp_path: Path) -> None:
    flags = ("--workers", "2", "--sleep-after", "1s", "--timeout", "20s", "--state-folder", str(tmp_path / "state"))
    with serving(package(tmp_path / "doubling"), *flags) as server, ThreadPoolExecutor(6) as crowd:
        server.wait_log("goes to sleep")
        given = list(crowd.map(lambda name: whole(server, name), range(1, 7)))
        assert [answer.status_code for answer in given] == [200] * 6, [answer.text for answer in given]
        assert [answer.json()["outputs"][0]["data"][0] for answer in given] == [2 * name for name in range(1, 7)]
