"""The wheel works in an empty environment."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from support import environments
from support.ports import free_port
from support.server import PACKAGES, ROOT


@pytest.mark.timeout(400)
def test_a_wheel_installed_alone_serves_a_package(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)],
        check=True,
        capture_output=True,
    )
    wheel = next(tmp_path.glob("panglot-*.whl"))
    environment = tmp_path / "venv"
    environments.install(environments.fresh(environment), str(wheel))
    assert subprocess.run([str(environment / "bin" / "panglot"), "--version"], capture_output=True, text=True).stdout
    port = str(free_port())
    server = subprocess.Popen(
        [str(environment / "bin" / "panglot"), "serve", str(PACKAGES / "stages"), "--port", port],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            try:
                if httpx.get(f"http://127.0.0.1:{port}/v2/health/ready", timeout=30).status_code == 200:
                    break
            except httpx.TransportError:
                pass
            time.sleep(0.1)
        answer = httpx.post(f"http://127.0.0.1:{port}/predict", json={"value": 3}, timeout=30)
        assert answer.json()["value"] == 6
        called = subprocess.run(
            [str(environment / "bin" / "panglot"), "call", f"http://127.0.0.1:{port}", '{"value": 3}'],
            capture_output=True,
            text=True,
        )
        assert called.returncode == 0, called.stderr
        assert json.loads(called.stdout)["answer"]["value"] == 6
        assert httpx.get(f"http://127.0.0.1:{port}/docs", timeout=30).status_code == 200
        assert httpx.get(f"http://127.0.0.1:{port}/", timeout=30).status_code == 200
    finally:
        server.terminate()
        assert server.wait(20) == 0, server.stderr.read() if server.stderr else ""
