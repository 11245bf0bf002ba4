"""The promise: system calls that are refused for the moment change no byte of any answer."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from support.server import serving, wait_until
from support.traffic import times

CALLS = "read,write,writev,sendmsg,sendto,recvfrom,recvmsg"


def test_calls_that_fail_now_and_then(tmp_path: Path) -> None:
    """Every seventh call of the server that moves bytes, to clients, workers and fronts, fails with EAGAIN."""
    trace = tmp_path / "trace"
    with serving("function") as server:
        command = ["strace", "-o", str(trace), "-e", f"trace={CALLS}"]
        command += [f"--attach={process.pid}" for process in server.own()]
        command += ["-e", f"inject={CALLS}:error=EAGAIN:when=1+7"]
        if not shutil.which("strace"):
            pytest.skip("there is no strace on this machine")
        tracer = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        try:
            assert tracer.stderr is not None
            for _ in server.own():
                if "attached" not in tracer.stderr.readline():
                    pytest.skip("this machine lets no process trace another")
            for number in range(times(300, 10_000)):
                value = [number, "x" * (number * 37 % 5000)]
                assert server.predict(value).json() == {"got": value}
            large = "y" * 3_000_000
            assert server.predict(large).json() == {"got": large}
        finally:
            tracer.terminate()
            tracer.communicate()
        wait_until(lambda: server.ready() == 200)
        assert trace.read_text(errors="replace").count("INJECTED") > 100
        assert server.metric("panglot_worker_restarts_total") == 0
