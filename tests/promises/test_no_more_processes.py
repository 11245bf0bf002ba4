"""The promise: where no further process can be started the server stays up, says so, and goes on when one can."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.cgroups import ROOT, inside
from support.server import serving, wait_until


@contextlib.contextmanager
def counted() -> Iterator[Path]:
    """A control group that can limit the number of its processes and threads."""
    above = ROOT / "pids" if (ROOT / "pids").is_dir() else ROOT
    group = above / f"panglot-test-pids-{os.getpid()}"
    try:
        group.mkdir()
        (group / "pids.max").write_text("max")
    except OSError as error:
        with contextlib.suppress(OSError):
            group.rmdir()
        pytest.skip(f"this machine lets no test limit processes: {error}")
    try:
        yield group
    finally:
        for _ in range(100):
            with contextlib.suppress(OSError):
                group.rmdir()
            if not group.exists():
                break
            time.sleep(0.05)


def test_a_worker_that_cannot_be_started_is_tried_again() -> None:
    flags = ("--restart-delay", "0.1s", "--restart-delay-max", "0.5s")
    with counted() as group, serving("function", *flags, before=inside(group)) as server:
        assert server.predict(1).status_code == 200
        limit = int((group / "pids.current").read_text()) - 1
        (group / "pids.max").write_text(str(max(1, limit)))
        server.workers()[0].kill()
        server.wait_log("Resource temporarily unavailable|could not be started", 20)
        assert server.client.get("/v2/health/live").status_code == 200
        assert server.predict(1).status_code == 503
        (group / "pids.max").write_text("max")
        wait_until(lambda: server.predict(1).status_code == 200, 20)
        assert server.process.poll() is None


def test_a_front_that_cannot_be_started_is_tried_again() -> None:
    flags = ("--fronts", "2", "--restart-delay", "0.1s", "--restart-delay-max", "0.5s")
    with counted() as group, serving("function", *flags, before=inside(group)) as server:
        (group / "pids.max").write_text("1")
        server.fronts()[1].kill()
        server.wait_log("front 1 could not be started, and is tried again: Resource temporarily unavailable", 20)
        server.client.close()
        server.client = server.new_client()
        assert server.predict(1).status_code == 200
        (group / "pids.max").write_text("max")
        wait_until(lambda: server.metric("panglot_fronts", state="answering") == 2, 20)
        assert server.predict(1).status_code == 200
