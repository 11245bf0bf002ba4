"""A new version is loaded beside the old one, which serves on until the new one is ready."""

from __future__ import annotations

import shutil
import signal
import time
from pathlib import Path

import pytest

from support.load import Busy
from support.server import PACKAGES, Server, serving, wait_until
from support.traffic import Gate, answers, send, times


@pytest.fixture
def package(tmp_path: Path) -> Path:
    return Path(shutil.copytree(PACKAGES / "life_echo", tmp_path / "echo"))


def set_version(package: Path, version: int, before: str = "") -> None:
    text = (PACKAGES / "life_echo" / "model.py").read_text()
    (package / "model.py").write_text(before + text.replace("VERSION = 1", f"VERSION = {version}"))


def version(server: Server) -> int:
    return int(server.predict({"id": 0}).json()["version"])


def test_reloads_under_load_drop_nothing(package: Path) -> None:
    """Many times in a row."""
    with serving(package, "--workers", "2") as server:
        server.wait_log("worker 1 ready")
        with Busy(server, clients=8, rate=100) as clients:
            for number in range(2, 2 + times(8, 200)):
                set_version(package, number)
                server.process.send_signal(signal.SIGHUP)
                wait_until(lambda number=number: number in clients.versions, 20, lambda: f"no version\n{server.log}")
                wait_until(lambda: len(server.workers()) == 2, 20)
        assert clients.lost == []
        assert clients.wrong == []
        assert set(clients.statuses) == {200}


@pytest.mark.parametrize("broken", ["def (", "raise RuntimeError('bad version')\n", "import os\nos._exit(7)\n"])
def test_a_broken_version_leaves_the_old_one_serving(package: Path, broken: str) -> None:
    with serving(package) as server:
        with Busy(server, clients=4, rate=100) as clients:
            set_version(package, 2, before=broken)
            server.process.send_signal(signal.SIGHUP)
            server.wait_log("the new worker failed, the old one serves on")
            time.sleep(0.3)
        assert clients.lost == []
        assert set(clients.statuses) == {200}
        assert clients.versions == {1}
        assert server.ready() == 200
        set_version(package, 3)
        server.process.send_signal(signal.SIGHUP)
        wait_until(lambda: version(server) == 3, 20)


def test_a_changed_file_is_loaded_with_reload(package: Path) -> None:
    with serving(package, "--reload") as server:
        assert version(server) == 1
        server.change(lambda: set_version(package, 2))
        wait_until(lambda: version(server) == 2, 20, lambda: server.log)
        server.wait_log("changed: model.py")


def test_without_reload_a_changed_file_changes_nothing(package: Path) -> None:
    with serving(package) as server:
        set_version(package, 2)
        time.sleep(1)
        assert version(server) == 1


DYING = """
import os, time

while os.path.exists(os.environ["LOADS_LONG"]):
    time.sleep(0.005)

def predict(item):
    print("runs", item["id"], flush=True)
    while item.get("gate") and not os.path.exists(item["gate"]):
        time.sleep(0.005)
    if item.get("crash"):
        os._exit(9)
    return item["id"]
"""


def test_a_worker_that_dies_while_it_is_replaced_died(tmp_path: Path) -> None:
    """The log says how, and with `--no-rerun` what it ran is not run again."""
    (tmp_path / "model.py").write_text(DYING)
    loads_long, gate = tmp_path / "long", Gate(tmp_path / "gate")
    with serving(tmp_path, "--no-rerun", env={"LOADS_LONG": str(loads_long)}) as server:
        old = server.workers()[0]
        loads_long.touch()
        server.process.send_signal(signal.SIGHUP)
        wait_until(lambda: len(server.workers()) == 2)
        old.kill()
        server.wait_log("worker 0 was killed by SIGKILL")
        loads_long.unlink()
        wait_until(lambda: server.predict({"id": 1}).status_code == 200)
        mark = len(server.lines)
        sent = send(server, {"id": 2, "gate": str(gate), "crash": True})
        server.wait_log("runs 2")
        server.process.send_signal(signal.SIGHUP)
        wait_until(lambda: server.metric("panglot_workers", state="retiring") == 1)
        gate.open()
        assert answers(server, [sent])[0].code == "worker_died"
        server.wait_log(r"worker 0 ended with exit code 9; it held 1 request", after=mark)
        assert server.predict({"id": 3}).json() == 3
    assert server.log.count("| runs 2") == 1


def test_a_worker_that_has_served_enough_is_replaced(package: Path) -> None:
    with serving(package, "--worker-max-requests", "50") as server:
        first = server.workers()[0].pid
        with Busy(server, clients=4, rate=200, sleep=0) as clients:
            wait_until(lambda: all(worker.pid != first for worker in server.workers()) and server.workers(), 20)
            time.sleep(0.5)
        assert clients.lost == []
        assert set(clients.statuses) == {200}
        server.wait_log("has served")


def test_a_worker_that_has_grown_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(
        "import os\nkept = []\n\ndef predict(request):\n    kept.append(bytearray(1 << 20))\n"
        "    return {'id': request['id'], 'version': 1, 'pid': os.getpid()}\n"
    )
    with serving(tmp_path, "--worker-memory", "80MiB") as server:
        with Busy(server, clients=4, rate=100) as clients:
            server.wait_log(r"it holds \d+ MiB of memory", 20)
            server.wait_log(r"(?s)it holds.*worker 0 ready", 20)
        assert clients.lost == []
        assert set(clients.statuses) == {200}
