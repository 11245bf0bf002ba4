"""Programs of the system that tests of a tier use: installed where that is possible, else named in one line.

A test that needs a missing program is skipped, and says so.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

PACKAGES = {
    "quick": {"curl": "curl", "openssl": "openssl", "ip": "iproute2", "strace": "strace"},
    "rest": {
        "chromium": "chromium",
        "node": "nodejs",
        "wrk": "wrk",
        "promtool": "prometheus",
        "java": "openjdk-17-jre-headless",
        "/usr/share/fonts/truetype/wqy/wqy-zenhei.ttc": "fonts-wqy-zenhei",
        "nginx": "nginx-light",
        "caddy": "caddy",
    },
}
"""Of each tier: a program, or the path of a file, and the Debian package that has it."""


def need(program: str) -> str:
    """The path of a program; skips the test where there is none."""
    path = shutil.which(program)
    if path is None:
        pytest.skip(f"there is no {program} on this machine")
    return path


def missing(tiers: Sequence[str]) -> list[str]:
    """The Debian packages of what these tiers use and is not here."""
    wanted = [entry for tier in tiers for entry in PACKAGES[tier].items()]
    return [package for program, package in wanted if not (shutil.which(program) or Path(program).is_file())]


def install(packages: list[str]) -> bool:
    """Install Debian packages; whether that worked."""
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    commands = (
        ["apt-get", "update", "-qq"],
        ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages],
    )
    return all(subprocess.run(command, env=quiet, stdout=subprocess.DEVNULL).returncode == 0 for command in commands)


def main(tiers: Sequence[str]) -> None:
    packages = missing(tiers)
    if not packages:
        return
    if os.geteuid() == 0 and shutil.which("apt-get"):
        print(f"installing {', '.join(packages)}, which tests use", flush=True)
        install(packages)
        packages = missing(tiers)
    if packages:
        print(f"not here: {', '.join(packages)}; the tests that use them are skipped. Debian has them by these names.")


if __name__ == "__main__":
    main(sys.argv[1:])
