"""Files of requests: they live as long as their prediction, however it ends."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.raw import post
from support.server import Server, serving, wait_until
from support.wire import Wire

EVENTS = "text/event-stream"
DATA = "data:text/plain;base64,aGk="
HEAD = """
import asyncio, time
import cog
from cog import BasePredictor, Input, Path
from typing import AsyncIterator, Iterator

def arrived(file):
    print("arrived " + file.read_text(), flush=True)

class Predictor(BasePredictor):
"""
FORMS = {
    "sync": """
    def predict(self, file: Path, seconds: float = 60) -> str:
        arrived(file)
        time.sleep(seconds)
        return "done"
""",
    "awaited": """
    async def predict(self, file: Path, seconds: float = 60) -> str:
        arrived(file)
        await asyncio.sleep(seconds)
        return "done"
""",
    "stream": """
    @cog.streaming
    def predict(self, file: Path, seconds: float = 60) -> Iterator[str]:
        arrived(file)
        time.sleep(seconds)
        yield "done"
""",
    "awaited stream": """
    @cog.streaming
    async def predict(self, file: Path, seconds: float = 60) -> AsyncIterator[str]:
        arrived(file)
        await asyncio.sleep(seconds)
        yield "done"
""",
}


@contextmanager
def waiting(folder: Path, form: str) -> Iterator[tuple[Server, Path]]:
    """A server whose predictions wait, and the folder of its temporary files."""
    package, temporary = folder / "package", folder / "temporary"
    package.mkdir()
    temporary.mkdir()
    (package / "predict.py").write_text(HEAD + FORMS[form])
    (package / "cog.yaml").write_text("predict: predict.py:Predictor\n")
    with serving(package, "--workers", "1", env={"TMPDIR": str(temporary)}) as server:
        yield server, temporary


def inputs(temporary: Path) -> list[Path]:
    """The folders of inputs. Not by `rglob`, to which a folder that is removed while it looks is an error."""
    return [Path(folder, name) for folder, names, _ in os.walk(temporary) for name in names if name.startswith("cog-")]


@pytest.mark.parametrize(
    ("form", "accept"),
    [*((form, "application/json") for form in FORMS), ("stream", EVENTS), ("awaited stream", EVENTS)],
)
def test_a_prediction_whose_client_leaves_leaves_no_file(tmp_path: Path, form: str, accept: str) -> None:
    body = b'{"input": {"file": "%b"}}' % DATA.encode()
    with waiting(tmp_path, form) as (server, temporary):
        for _ in range(2):
            mark = len(server.lines)
            with Wire(server) as client:
                client.send(post(body, f"Accept: {accept}", path="/predictions"))
                server.wait_log("arrived hi", after=mark)
                assert inputs(temporary)
            wait_until(lambda: not inputs(temporary), message=lambda: str(inputs(temporary)))
        # The same with a worker that serves on.
        answer = server.client.post("/predictions", json={"input": {"file": DATA, "seconds": 0}}).json()
        assert answer["status"] == "succeeded"
        assert not inputs(temporary)


@pytest.mark.parametrize("form", ["sync", "awaited"])
def test_a_worker_that_is_killed_leaves_no_file(tmp_path: Path, form: str) -> None:
    with waiting(tmp_path, form) as (server, temporary):
        (worker,) = server.workers()
        asynchronous = {"prefer": "respond-async"}
        mark = len(server.lines)
        server.client.post("/predictions", json={"id": "a", "input": {"file": DATA}}, headers=asynchronous)
        server.wait_log("arrived hi", after=mark)
        (first,) = inputs(temporary)
        os.kill(worker.pid, signal.SIGKILL)
        wait_until(lambda: not first.exists())
        # Jobs run again.
        server.client.post("/predictions/a/cancel")
    assert not inputs(temporary)
