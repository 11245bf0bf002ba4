"""A large tensor: what front and worker hold of it together."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import httpx
import pytest

from support.rpc import Rpc
from support.server import Server, serving
from support.traffic import times

MB = 1 << 20
SIZE = times(64, 200) * MB
LIMITS = ("--max-body", "300m", "--max-output", "300m", "--request-memory", "1g", "--grpc-port", "0")


class Peak:
    """The most memory that a server's processes had together, each shared page counted once."""

    def __init__(self, server: Server) -> None:
        self.pids = [server.process.pid, *(worker.pid for worker in server.workers())]
        self.before = self.now()
        self.most = self.before
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def now(self) -> int:
        total = 0
        for pid in self.pids:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            total += next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024
        return total

    def _look(self) -> None:
        while not self._over.is_set():
            self.most = max(self.most, self.now())
            time.sleep(0.002)

    def __enter__(self) -> Peak:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._over.set()
        self._thread.join()

    @property
    def grown(self) -> int:
        return self.most - self.before


@pytest.mark.parametrize("way", ["rest", "grpc"])
def test_a_large_tensor_is_held_at_most_four_times(way: str) -> None:
    data = bytes(SIZE)
    with serving("tensors", *LIMITS) as server:
        if way == "rest":
            about = {"name": "x", "datatype": "UINT8", "shape": [SIZE], "parameters": {"binary_data_size": SIZE}}
            text = json.dumps({"inputs": [about], "parameters": {"binary_data_output": True}}).encode()
            headers = {"inference-header-content-length": str(len(text))}
            url = f"{server.url}/v2/models/tensors/infer"
            httpx.post(url, json={"inputs": [{"name": "y", "datatype": "INT8", "shape": [1], "data": [1]}]})
            with Peak(server) as peak:
                answer = httpx.post(url, content=text + data, headers=headers, timeout=60)
            assert answer.status_code == 200, answer.text
            assert answer.content.endswith(data)
        else:
            rpc = Rpc(server)
            request = rpc.kind("ModelInferRequest")(model_name="tensors")
            request.inputs.add(name="x", datatype="UINT8", shape=[SIZE])
            request.raw_input_contents.append(data)
            rpc.call("ModelInfer", rpc.tensors("tensors", x=[1.0]))
            with Peak(server) as peak:
                raw = rpc.call("ModelInfer", request, timeout=60).raw_output_contents[0]
            assert raw == data
            rpc.close()
        assert peak.grown <= 4 * SIZE + 150 * MB, peak.grown / SIZE
        print(f"{way}: {peak.grown / SIZE:.2f} times the payload")
