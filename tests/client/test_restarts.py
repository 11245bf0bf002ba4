"""Calls while workers are killed and the server is restarted: every input gets its one answer."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from panglot import Client
from support.ports import free_port
from support.server import ROOT, Server, serving
from support.traffic import SOAK, times

EXAMPLES = ROOT / "examples"
REQUEST = json.loads((EXAMPLES / "tiinfer" / "request.json").read_text())
TENSORS = json.loads((EXAMPLES / "triton" / "request.json").read_text())
Right = Callable[[Any], Any]
CASES: dict[str, tuple[dict[Any, Any], Right]] = {
    "bare": (
        {EXAMPLES / "bare" / "seven.png": 7, EXAMPLES / "bare" / "three.png": 3},
        lambda answer: max(range(10), key=lambda digit: float(answer["probabilities"][0][digit])),
    ),
    "digits": (
        {EXAMPLES / "digits" / "seven.png": 7, EXAMPLES / "digits" / "three.png": 3},
        lambda answer: answer["digit"],
    ),
    "evals": (
        {EXAMPLES / "evals" / "seven.png": 7, EXAMPLES / "evals" / "three.png": 3},
        lambda answer: answer["result"]["confidences"][0]["index"],
    ),
    "megflow/digits": (
        {EXAMPLES / "megflow" / "digits" / "seven.png": 7, EXAMPLES / "megflow" / "digits" / "three.png": 3},
        lambda answer: answer["digit"],
    ),
    "modelarts": (
        {EXAMPLES / "modelarts" / "model" / "seven.png": 7, EXAMPLES / "modelarts" / "model" / "three.png": 3},
        lambda answer: answer["digits"][0],
    ),
    "paddle": ({EXAMPLES / "paddle" / "images" / "demo.png": 3}, lambda answer: answer["class_id"]),
    "tiinfer": ({json.dumps(REQUEST): 7}, lambda answer: answer["digits"][0]),
    "triton": ({json.dumps(TENSORS): 7}, lambda answer: answer["DIGIT"][0][0]),
}


@pytest.mark.parametrize("name", CASES if SOAK else ["bare", "digits", "evals", "megflow/digits", "tiinfer", "triton"])
def test_every_example_through_kills_and_a_restart(name: str) -> None:
    """A worker dies, the server is killed with calls on their way, and a worker of its successor dies."""
    expected, right = CASES[name]
    inputs = [entry for _ in range(times(60, 2000) // len(expected)) for entry in expected]
    wanted = [expected[entry] for entry in inputs]
    asked = [entry if isinstance(entry, Path) else json.loads(entry) for entry in inputs]
    # Not a port of the kernel's choice: while nobody listens, the client that tries again could be given it.
    port = ("--port", str(free_port()))
    with serving(EXAMPLES / name, *port) as server, Client(server.url, retry=True, connect_timeout=60) as client:
        answers = []
        for answer in client.map(asked, concurrency=4):
            answers.append(right(answer))
            if len(answers) == 10:
                server.workers()[0].kill()
            if len(answers) == 30:
                again = restarted(server, EXAMPLES / name)
            if len(answers) == 45:
                again.workers()[0].kill()
        try:
            assert answers == wanted, "one for each input, in their order"
            assert again.metric("panglot_worker_restarts_total") == 1
        finally:
            assert again.stop() == 0


def restarted(server: Server, path: Path) -> Server:
    """Another server in the place of this one, which is killed with whatever it was doing."""
    server.stop(signal.SIGKILL)
    return Server(path, "--port", str(server.port))
