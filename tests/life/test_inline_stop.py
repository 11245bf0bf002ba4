"""A signal that comes while `--inline` still starts ends the server as any other does."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

from support.server import PACKAGES


@pytest.mark.parametrize("seconds", [0.4, 0.6, 0.8, 1.0])
def test_a_signal_during_the_start_is_not_lost(seconds: float) -> None:
    command = [sys.executable, "-m", "panglot", "serve", str(PACKAGES / "function"), "--inline", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        time.sleep(seconds)
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=60)
    assert process.returncode in (0, -signal.SIGTERM), log
