"""Ensembles whose steps are refused, or loaded anew, while requests are under way."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from support.models import all_of
from support.server import Server, serving, wait_until

LARGE = Path(__file__).parent / "large"
ADMIN = "an-admin-token-of-some-length-0123456789"
WAITS = {"first": -11.0, "second": -20.0}
"""What a model waits on, for many seconds, until its client leaves."""
COUNT = 20_000
CALLER = """
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        inputs = [pb_utils.Tensor("IN", request.inputs()[0].as_numpy())]
        response = pb_utils.InferenceRequest(model_name="chain", requested_output_names=["OUT"], inputs=inputs).exec()
        if response.has_error():
            return pb_utils.InferenceResponse(error=response.error())
        return pb_utils.InferenceResponse([pb_utils.Tensor("Y", response.output_tensors()[0].as_numpy())])
"""


def body(first: float = 7.0, name: str = "IN") -> dict[str, Any]:
    data = [first] + [1.0] * (COUNT - 1)
    return {"inputs": [{"name": name, "datatype": "FP32", "shape": [COUNT], "data": data}]}


def ask(server: Server, model: str, name: str = "IN") -> Any:
    return server.client.post(f"/v2/models/{model}/infer", json=body(name=name), timeout=120)


@contextlib.contextmanager
def waiting(server: Server, model: str) -> Iterator[None]:
    """A request on which a model waits in the block."""
    content = json.dumps(body(WAITS[model], "X")).encode()
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        head = f"POST /v2/models/{model}/infer HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(content)}\r\n"
        connection.sendall(f"{head}authorization: Bearer {ADMIN}\r\n\r\n".encode() + content)
        yield


def test_a_call_of_an_ensemble_that_is_refused_at_once_is_answered_once(tmp_path: Path) -> None:
    shutil.copytree(LARGE, tmp_path, dirs_exist_ok=True)
    (tmp_path / "caller" / "1" / "model.py").write_text(CALLER)
    with serving(all_of(tmp_path), "--queue", "1", ready=False) as server:
        server.wait_ready()

        def count(model: str, status: int) -> float:
            return server.metric("panglot_requests_total", model=model, route="another model", status=str(status))

        with waiting(server, "first"), waiting(server, "first"):
            server.wait_log("first waits")
            wait_until(lambda: server.metric("panglot_queue_length", model="first") == 1)
            refused = ask(server, "caller", "X")
            assert (refused.status_code >= 400, "too many requests are waiting" in refused.text) == (True, True)
            assert count("chain", 503) == 1
        wait_until(lambda: ask(server, "caller", "X").status_code == 200)
        assert count("chain", 499) == 0, "it was not cancelled besides"


def test_results_that_wait_for_the_next_step_can_be_read_by_its_new_worker(tmp_path: Path) -> None:
    """They lie in a file of the model that gave them, which is loaded anew meanwhile."""
    shutil.copytree(LARGE, tmp_path, dirs_exist_ok=True)
    with serving(all_of(tmp_path), "--admin", ready=False, env={"PANGLOT_ADMIN_TOKEN": ADMIN}) as server:
        server.wait_ready()
        server.client.headers["authorization"] = f"Bearer {ADMIN}"
        for _ in range(4):
            # The front learns from the first answers how large a buffer must be.
            assert ask(server, "chain").status_code == 200
        with ThreadPoolExecutor(1) as clients:
            with waiting(server, "second"):
                server.wait_log("second waits")
                answer = clients.submit(ask, server, "chain")
                wait_until(lambda: served(server, "first") == 5)
                assert server.client.post("/v2/repository/models/first/load").status_code == 200
                # What nobody needs any more is released meanwhile.
                time.sleep(1)
                os.kill(pid_of(server, "second"), signal.SIGKILL)
            given = answer.result()
        assert given.status_code == 200, given.text
        assert sum(given.json()["outputs"][0]["data"]) == 7.0 + 112.0 * (COUNT - 1)
        wait_until(lambda: server.metric("panglot_slots_in_use", model="first") == 0)


def rows(server: Server, model: str) -> list[dict[str, Any]]:
    return [row for row in server.client.get("/status.json").json()["workers"] if row["model"] == model]


def served(server: Server, model: str) -> int:
    return sum(int(row["served"]) for row in rows(server, model))


def pid_of(server: Server, model: str) -> int:
    (row,) = rows(server, model)
    return int(row["pid"])
