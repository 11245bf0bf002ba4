"""Files of requests on a node: in a folder of their worker, which ends with the worker, also where it is killed."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from support.on_nodes import on_nodes, workers
from support.ray_cluster import RayCluster
from support.server import Server, wait_until

pytestmark = pytest.mark.timeout(400)
TEXT = "data:text/plain;base64,aGk="
SCRIPT = """
import os
import time

import cog


class Predictor(cog.BasePredictor):
    def predict(self, file: cog.Path, note: str) -> str:
        with open(note, "w") as written:
            written.write(str(file))
        while not os.path.exists(note + ".go"):
            time.sleep(0.01)
        return file.read_text()
"""


def test_they_end_with_a_worker_that_is_killed(inside: RayCluster, tmp_path: Path) -> None:
    package = tmp_path / "files"
    package.mkdir()
    (package / "predict.py").write_text(SCRIPT)
    (package / "cog.yaml").write_text("predict: predict.py:Predictor\n")

    def predicted(server: Server, note: Path) -> int:
        body = {"input": {"file": TEXT, "note": str(note)}}
        return server.client.post("/predictions", json=body, timeout=120).status_code

    def stored(note: Path) -> Path:
        wait_until(lambda: note.exists() and note.read_text())
        return Path(note.read_text())

    with on_nodes(inside, "--no-rerun", path=package, workers=1) as server, ThreadPoolExecutor() as threads:
        asked = threads.submit(predicted, server, tmp_path / "first")
        file = stored(tmp_path / "first")
        folder = next(above for above in file.parents if above.name.endswith("-inputs"))
        assert file.read_text() == "hi"
        (worker,) = workers(inside)
        os.kill(worker, signal.SIGKILL)
        assert asked.result() == 500
        wait_until(lambda: not folder.exists(), 60)
        asked = threads.submit(predicted, server, tmp_path / "second")
        file = stored(tmp_path / "second")
        (tmp_path / "second.go").touch()
        assert asked.result() == 200
        wait_until(lambda: not file.exists(), 60)
        folder = next(above for above in file.parents if above.name.endswith("-inputs"))
        assert list(folder.iterdir()) == []
    wait_until(lambda: not folder.exists(), 60)
