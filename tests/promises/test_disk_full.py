"""The promise: a full disk costs the upload that filled it; small requests go on, and the space comes back."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import httpx
import pytest

from support.server import serving
from support.videos import made

MIB = 1 << 20


def test_sixteen_megabytes_are_all_there_is(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    small = ["unshare", "-m", "sh", "-c", f'mount -t tmpfs -o size=16m none {disk} && exec "$@"', "sh"]
    if not shutil.which("unshare") or subprocess.run([*small, "true"], capture_output=True).returncode:
        pytest.skip("this machine lets no process have mounts of its own")
    clip = made(5)
    with serving("megflow_video", env={"TMPDIR": str(disk)}, before=small) as server:
        for _ in range(3):
            with server.new_client() as client:
                try:
                    status = client.post("/analyze_video", content=clip + bytes(40 * MIB)).status_code
                except (httpx.WriteError, httpx.ReadError):
                    status = 507  # closed while we were still sending
                assert status == 507
            assert server.client.post("/analyze_video", content=clip).text.count("\nid: ") == 5
        server.wait_log("uploads cannot be saved .*No space left on device")
        assert server.client.get("/list").status_code == 200
