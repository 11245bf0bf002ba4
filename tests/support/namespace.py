"""Network namespaces for tests: nothing that happens in one gets out."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

from support.server import ROOT

WAYS = (["-n"], ["-U", "-r", "-n"])
"""As root, or as root of a user namespace."""


def unshared(*set_up: str, mounts: bool = False) -> list[str]:
    """What to put before a command so that it runs in a namespace, once the given lines of shell have run there.

    With `mounts` it has mounts of its own too.
    """
    if not shutil.which("unshare") or not shutil.which("ip"):
        pytest.skip("there is no unshare or no ip on this machine")
    for way in WAYS:
        flags = [*way, "-m"] if mounts else way
        if subprocess.run(["unshare", *flags, "true"], capture_output=True).returncode == 0:
            return ["unshare", *flags, "sh", "-c", " && ".join([*set_up, 'exec "$@"']), "sh"]
    pytest.skip("this machine lets no process have a network namespace of its own")


def run_inside(
    command: list[str], hosts: Path, addresses: Iterable[str] = (), given: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run a command where `lo` is alone, with more addresses on it, and `hosts` in the place of /etc/hosts."""
    set_up = ["ip link set lo up", *(f"ip address add {address} dev lo" for address in addresses)]
    inside = unshared(*set_up, f"mount --bind {hosts} /etc/hosts", mounts=True)
    return subprocess.run([*inside, *command], input=given, capture_output=True, text=True, cwd=ROOT)
