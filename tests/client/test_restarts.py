"""Calls while workers are killed and the server is restarted: every input gets its one answer."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from panglot import Client
from support.server import ROOT, Server, serving
from support.traffic import SOAK, times

EXAMPLES = ROOT / "examples"
REQUEST = json.loads((EXAMPLES / "tiinfer" / "request.json").read_text())
Right = Callable[[Any], Any]
CASES: dict[str, tuple[dict[Any, Any], Right]] = {
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
}


@pytest.mark.parametrize("name", CASES if SOAK else ["digits", "evals", "megflow/digits", "tiinfer"])
def test_every_example_through_a_kill_and_a_restart(name: str) -> None:
    expected, right = CASES[name]
    inputs = [entry for _ in range(times(60, 2000) // len(expected)) for entry in expected]
    wanted = [expected[entry] for entry in inputs]
    asked = [entry if isinstance(entry, Path) else json.loads(entry) for entry in inputs]
    with serving(EXAMPLES / name) as server, Client(server.url, retry=True, connect_timeout=60) as client:
        answers = []
        for answer in client.map(asked, concurrency=4):
            answers.append(right(answer))
            if len(answers) == 10:
                server.workers()[0].kill()
            if len(answers) == 30:
                again = restarted(server, EXAMPLES / name)
        try:
            assert answers == wanted
        finally:
            assert again.stop() == 0


def restarted(server: Server, path: Path) -> Server:
    """Another server in the place of this one, which is killed with whatever it was doing."""
    server.stop(signal.SIGKILL)
    return Server(path, "--port", str(server.port))
