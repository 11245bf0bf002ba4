"""Disks that are full or cannot be written, as clients and operators of a server meet them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.server import PACKAGES, serving, wait_until

ASYNC = {"prefer": "respond-async"}
LARGE = "y" * 70_000
"""Stored as a file."""


def mounted(disk: Path, options: str) -> list[str]:
    """What a command is begun with to find a disk of its own in a folder."""
    disk.mkdir()
    before = ["unshare", "-m", "sh", "-c", f'mount -t tmpfs -o {options} none {disk} && exec "$@"', "sh"]
    if not shutil.which("unshare") or subprocess.run([*before, "true"], capture_output=True).returncode:
        pytest.skip("this machine lets no process have mounts of its own")
    return before


def test_on_a_full_disk_new_jobs_are_refused_and_all_else_goes_on(tmp_path: Path) -> None:
    before = mounted(disk := tmp_path / "disk", "size=5m")
    flags = ("--jobs", str(disk / "jobs"), "--workers", "2", "--jobs-workers", "1", "--on-leave", "interrupt")
    with serving("job_steps", *flags, before=before) as server:
        # No other job ends before this one is cancelled.
        first = server.client.post("/predict", json={"sleep": 600}, headers=ASYNC).headers["location"]
        accepted: list[str] = []
        while True:
            body = {"status": 200, "pad": LARGE if len(accepted) % 2 else ""}
            answer = server.client.post("/predict", json=body, headers=ASYNC)
            if answer.status_code != 202:
                break
            accepted.append(answer.headers["location"])
        assert (answer.status_code, answer.json()["error"]["code"]) == (507, "jobs_disk")
        assert answer.headers["retry-after"] == "10"
        assert len(accepted) > 20
        assert server.metric("panglot_jobs_refused") == 1
        assert server.predict({}).status_code == 200
        server.client.delete(first)
        for job in accepted:
            wait_until(lambda job=job: server.client.get(job).json()["state"] == "done")
            assert server.client.get(f"{job}/result").content == b"own bytes"
            server.client.delete(job)
        assert server.client.post("/predict", json={"pad": LARGE}, headers=ASYNC).status_code == 202
        assert server.metric("panglot_jobs_refused") == 0


def test_a_disk_that_cannot_be_written_ends_the_start(tmp_path: Path) -> None:
    before = mounted(disk := tmp_path / "disk", "ro")
    command = [sys.executable, "-m", "panglot", "serve", str(PACKAGES / "job_steps"), "--port", "0"]
    done = subprocess.run([*before, *command, "--jobs", str(disk / "jobs")], capture_output=True, text=True, timeout=60)
    assert done.returncode == 3
    assert f"--jobs {disk / 'jobs'}: Read-only file system" in done.stderr
