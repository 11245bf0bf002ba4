"""The promise: a clock that jumps by an hour, either way, times nobody out and keeps nothing waiting."""

from __future__ import annotations

import os
from pathlib import Path

from support.server import serving

JUMPING = """
import itertools, time
real, jump = time.time, itertools.cycle((0.0, 3600.0, -3600.0))
time.time = lambda: real() + next(jump)
"""


def test_every_look_at_the_clock_is_an_hour_off(tmp_path: Path) -> None:
    """For front and worker alike: whatever asks for the time of day gets another hour each time."""
    (tmp_path / "sitecustomize.py").write_text(JUMPING)
    path = os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH", ""))))
    flags = ("--timeout", "20s", "--keep-alive", "20s", "--header-timeout", "20s")
    with serving("naps", *flags, env={"PYTHONPATH": path}) as server:
        for _ in range(50):
            assert server.predict(0.02).status_code == 200
        assert server.client.get("/metrics").status_code == 200
        assert server.predict(1.5, headers={"x-timeout-ms": "300"}).status_code == 504, "deadlines still pass"
        assert server.predict(0).status_code == 200
        assert server.metric("panglot_worker_restarts_total") == 0
        assert server.stop() == 0
