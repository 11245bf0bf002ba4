"""A network of a test's own: `lo` alone, with more addresses on it and names of the test's choice; nothing gets out."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

from support.server import ROOT

FLAGS = (["-n", "-m"], ["-U", "-r", "-n", "-m"])
"""As root, or as root of a user namespace."""


def run_inside(command: str, hosts: Path, addresses: Iterable[str] = ()) -> subprocess.CompletedProcess[str]:
    """Run a shell command there, `hosts` in the place of /etc/hosts; skips the test where that is not permitted."""
    set_up = ["ip link set lo up", *(f"ip address add {address} dev lo" for address in addresses)]
    whole = " && ".join([*set_up, f"mount --bind {hosts} /etc/hosts", command])
    if not shutil.which("unshare") or not shutil.which("ip"):
        pytest.skip("there is no unshare or no ip on this machine")
    for flags in FLAGS:
        if subprocess.run(["unshare", *flags, "true"], capture_output=True).returncode == 0:
            return subprocess.run(["unshare", *flags, "sh", "-c", whole], capture_output=True, text=True, cwd=ROOT)
    pytest.skip("this machine lets no process have a network namespace of its own")
