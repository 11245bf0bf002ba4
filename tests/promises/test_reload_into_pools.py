"""A reload whose script newly asks for pools says that a restart is needed, and the old version serves on."""

from __future__ import annotations

import signal
import time
from pathlib import Path

from support.load import Busy
from support.server import serving, wait_until

SCRIPT = """
import tiinfer
{counts}


class Echo(tiinfer.Model):
    def __init__(self, model_dir):
        super().__init__(model_dir)

    def load(self):
        return True

    def preprocess(self, request):
        return request

    def predict(self, request):
        return {{"id": request["id"], "version": {version}}}
"""


def write(folder: Path, version: int, counts: str = "") -> None:
    (folder / "model_service.py").write_text(SCRIPT.format(version=version, counts=counts))


class BusyInference(Busy):
    path = "/inference"


def test_the_old_version_serves_on(tmp_path: Path) -> None:
    write(tmp_path, 1)
    with serving(tmp_path) as server:
        with BusyInference(server, clients=4, rate=100) as clients:
            write(tmp_path, 2, "tiinfer.set_ti_preprocess_nums(2)")
            server.process.send_signal(signal.SIGHUP)
            said = server.wait_log(r"the new worker failed, the old one serves on: (.*)")[1]
            time.sleep(0.3)
        assert "asks for pools (preprocess x 2, inference)" in said
        assert "restart the server" in said
        assert "exit code" not in said
        assert clients.lost == []
        assert set(clients.statuses) == {200}
        assert clients.versions == {1}
        write(tmp_path, 3)
        server.process.send_signal(signal.SIGHUP)
        wait_until(lambda: server.client.post("/inference", json={"id": 1}).json()["version"] == 3, 20)
