"""Whatever a script does to its own process, the server and the next worker do not notice."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import psutil
import pytest

from support.descent import children
from support.server import serving, wait_until
from support.traffic import send, times


def test_a_script_that_changes_the_world() -> None:
    with serving("life_world", "--timeout", "5s") as server:
        assert server.predict("spoil").status_code == 200
        for _ in range(5):
            assert server.predict("fine").json()["cwd"] == "/"
        first = server.workers()[0]
        first.kill()
        wait_until(lambda: server.predict("fine").json()["pid"] != first.pid)
        assert server.predict("fine").json()["cwd"].endswith("life_world"), "the next worker starts clean"
        assert server.stop() == 0


def test_a_worker_that_ignores_every_signal_is_ended_all_the_same() -> None:
    with serving("life_world", "--run-timeout", "0.5s", "--kill-grace", "0.2s", "--timeout", "20s") as server:
        server.predict("spoil")
        assert server.predict("deadlock", headers={"x-timeout-ms": "700"}).status_code == 504
        wait_until(lambda: server.predict("fine").status_code == 200, 15)


def test_a_deadlock_is_a_hang() -> None:
    with serving("life_world", "--run-timeout", "0.5s", "--kill-grace", "0.2s") as server:
        assert server.predict("deadlock").status_code == 504
        wait_until(lambda: server.predict("fine").status_code == 200, 10)
        server.wait_log("one call ran longer than 0.5 s")
        server.wait_log("in predict")


def test_children_die_with_their_worker() -> None:
    with serving("life_world") as server:
        for _ in range(3):
            server.predict("litter")
        started = [child for worker in server.workers() for child in children(worker, recursive=True)]
        assert len(started) == 3
        server.workers()[0].kill()
        _, alive = psutil.wait_procs(started, timeout=30)
        assert not alive
        assert server.predict("fine").status_code == 200


@pytest.mark.parametrize("kind", ["lines", "long", "binary"])
def test_a_flood_of_output_is_bounded_and_counted(kind: str) -> None:
    with serving("life_flood", "--workers", "2") as server:
        server.wait_log("worker 1 ready")
        flood = send(server, kind)
        for number in range(20):
            assert server.predict(number).json() == number
        assert flood.result(30).json() == kind
        if kind != "binary":
            wait_until(lambda: server.metric("panglot_log_dropped_bytes_total") > 0)
    assert len(server.log) < 6_000_000
    assert not re.search(r"[\x00-\x08\x0b-\x1f]", server.log)


def test_workers_start_although_the_script_has_threads_and_locks() -> None:
    with serving("life_world", "--workers", "2", "--restart-delay-max", "0.2") as server:
        for deaths in range(1, times(6, 200) + 1):
            server.workers()[0].kill()
            wait_until(lambda n=deaths: server.metric("panglot_worker_restarts_total", reason="died") == n)
            wait_until(lambda: server.metric("panglot_workers", state="ready") == 2, 20)
        assert server.predict("fine").status_code == 200


def write(folder: Path, text: str) -> Path:
    """In one step: a worker that starts meanwhile must not read half of it."""
    draft = folder / "draft"
    draft.write_text(text)
    draft.rename(folder / "model.py")
    return folder


CRASHING = "import os\n\ndef predict(request):\n    os.kill(os.getpid(), 11)\n"
FIXED = "def predict(request):\n    return 'fixed'\n"


def test_a_crash_at_every_request_is_visible_and_heals(tmp_path: Path) -> None:
    """Each request is answered with its own crash, none with a pause; a mended script heals without help."""
    package = write(tmp_path, CRASHING)
    with serving(package, "--restart-delay", "5s", "--timeout", "20s") as server:
        assert [server.predict(number).status_code for number in range(4)] == [500] * 4
        wait_until(lambda: server.metric("panglot_worker_restarts_total", reason="died") == 8)
        server.wait_log(r"worker 0 was killed by SIGSEGV; it held 1 request: \S+")
        assert server.client.get("/v2/health/live").status_code == 200
        write(tmp_path, FIXED)
        bodies = itertools.count(4)
        wait_until(lambda: server.predict(next(bodies)).status_code == 200, 20, lambda: server.log)
        assert server.ready() == 200
    assert "is started again in" not in server.log


def test_a_failing_example_is_a_warning_or_a_failed_load(tmp_path: Path) -> None:
    from support.server import panglot

    package = write(
        tmp_path,
        "class Model:\n    def example(self):\n        return 3\n\n    def predict(self, item):\n"
        "        if item == 3:\n            raise ValueError('bad example')\n        return item\n",
    )
    with serving(package) as server:
        server.wait_log("the script's own example failed")
        server.wait_log("ValueError: bad example")
        assert server.predict(4).json() == 4
    with serving(package, "--warm-up", "off") as server:
        assert server.predict(4).json() == 4
    assert "own example failed" not in server.log
    done = panglot("serve", str(package), "--warm-up", "fail", "--port", "0")
    assert done.returncode == 3
    assert "ValueError: bad example" in done.stderr


def test_two_servers_of_one_package_do_not_meet(tmp_path: Path) -> None:
    package = write(tmp_path, FIXED)
    with serving(package) as first, serving(package) as second:
        assert first.predict(1).json() == second.predict(1).json() == "fixed"
        first.process.kill()
        first.process.wait()
        assert second.predict(1).json() == "fixed"
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "__pycache__") == ["model.py"]
