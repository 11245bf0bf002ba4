"""The promise: a server of names that is dead, slow or talkative delays who asked for a name, and nobody else."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from support.namespace import unshared
from support.server import ROOT


def test_names(tmp_path: Path) -> None:
    resolver = tmp_path / "resolv.conf"
    resolver.write_text("nameserver 127.0.0.1\noptions timeout:30 attempts:1\n")
    set_up = [
        "ip link set lo up",
        "ip address add 93.184.216.34/32 dev lo",
        f"mount --bind {resolver} /etc/resolv.conf",
    ]
    cases = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/promises/dns_cases.py"]
    command = [*unshared(*set_up, mounts=True), *cases]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=100)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert re.search(r"3 passed", done.stdout)
