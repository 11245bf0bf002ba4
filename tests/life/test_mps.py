"""NVIDIA's MPS, started and stopped with the server; a stand-in for its program tells what it was asked."""

from __future__ import annotations

import os
from pathlib import Path

import psutil
import pytest

from panglot.settings import Settings
from panglot.settings.counts import exactly
from panglot.tools.doctor import machine
from support.server import lives, panglot, serving, wait_until

SCRIPT = "import os\n\ndef predict(request):\n    return os.environ.get('CUDA_MPS_PIPE_DIRECTORY', '')\n"
DAEMON = """#!/bin/sh
if [ "$1" = -f ]; then
  [ -n "$MPS_FAILS" ] && { echo "cannot find an MPS-capable GPU"; exit 1; }
  echo $$ > "$CUDA_MPS_PIPE_DIRECTORY/pid"
  touch "$CUDA_MPS_PIPE_DIRECTORY/control"
  trap 'exit 0' TERM
  while [ ! -e "$CUDA_MPS_PIPE_DIRECTORY/quit" ]; do sleep 0.05; done
else
  read word
  touch "$CUDA_MPS_PIPE_DIRECTORY/$word"
fi
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A PATH with a stand-in for NVIDIA's program."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "nvidia-cuda-mps-control"
    program.write_text(DAEMON)
    program.chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


@pytest.fixture
def script(tmp_path: Path) -> Path:
    file = tmp_path / "script.py"
    file.write_text(SCRIPT)
    return file


def test_workers_find_it_and_it_ends_with_the_server(path: str, script: Path) -> None:
    with serving(script, "--mps", env={"PATH": path}) as server:
        server.wait_log(r"MPS started \(pid \d+\): workers that share a GPU use it side by side")
        folder = Path(server.predict({}).json())
        daemon = int((folder / "pid").read_text())
        assert psutil.pid_exists(daemon)
    assert not psutil.pid_exists(daemon)
    assert not folder.exists()
    server.wait_log("MPS stopped")


def test_it_ends_when_the_server_is_killed(path: str, script: Path) -> None:
    with serving(script, "--mps", env={"PATH": path}) as server:
        folder = Path(server.predict({}).json())
        daemon = psutil.Process(int((folder / "pid").read_text()))
        server.process.kill()
        server.process.wait()
        wait_until(lambda: not lives(daemon))


def test_wrong_uses_end_in_one_line(path: str, script: Path) -> None:
    done = panglot("serve", str(script), "--port", "0", "--mps", env={"PATH": "/usr/bin:/bin"})
    assert done.returncode == 3
    assert "--mps: nvidia-cuda-mps-control is not on this machine" in done.stderr
    done = panglot("serve", str(script), "--port", "0", "--mps", env={"PATH": path, "MPS_FAILS": "1"})
    assert done.returncode == 3
    assert "--mps: nvidia-cuda-mps-control did not start: cannot find an MPS-capable GPU" in done.stderr


def test_doctor_tells_whether_it_would_help(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", path)
    monkeypatch.delenv("CUDA_MPS_PIPE_DIRECTORY", raising=False)
    assert machine.sharing_of_gpus(Settings(), 0) is None
    found = machine.sharing_of_gpus(Settings(workers=exactly(4)), 1)
    assert found is not None
    assert (found.value, found.fix) == ("not started: 4 workers share 1 GPU, and take turns on it", "serve with --mps")
    found = machine.sharing_of_gpus(Settings(workers=exactly(4), mps=True), 1)
    assert found is not None
    assert found.value.startswith("would be started")
    found = machine.sharing_of_gpus(Settings(workers=exactly(2), device="cuda:0,cuda:1"), 2)
    assert found is not None
    assert found.value.startswith("there;")
    monkeypatch.setenv("PATH", "/nowhere")
    found = machine.sharing_of_gpus(Settings(workers=exactly(4)), 1)
    assert found is not None
    assert found.value.startswith("not there")
