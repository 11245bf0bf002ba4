"""The promise: a machine with no time to spare makes answers late, and kills nothing that only waits for its turn."""

from __future__ import annotations

import subprocess
import sys
import time

from support.server import serving

BUSY = "while True:\n    pass\n"


def test_other_processes_take_the_processors() -> None:
    with serving("naps", "--run-timeout", "10s", "--kill-grace", "5s") as server:
        others = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(4)]
        try:
            end = time.monotonic() + 4
            while time.monotonic() < end:
                assert server.client.get("/v2/health/live").status_code == 200
                assert server.ready() == 200
                assert server.predict(0.01).status_code == 200
        finally:
            for other in others:
                other.kill()
                other.wait()
        assert server.metric("panglot_worker_restarts_total") == 0
    assert "killed" not in server.log
