"""The promise: a limit on memory of the server's own control group, or of any above it, is seen."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from support.cgroups import inside, memory_groups
from support.server import PACKAGES, ROOT

MIB = 1 << 20
LIMITS = {"its own": (400 * MIB,), "the one above": (400 * MIB, 0), "the lowest": (800 * MIB, 400 * MIB, 0)}


@pytest.mark.parametrize("limits", LIMITS.values(), ids=LIMITS)
def test_what_is_held_is_a_quarter_of_the_limit(limits: tuple[int, ...]) -> None:
    with memory_groups(*limits) as groups:
        command = [
            *inside(groups[-1]),
            sys.executable,
            "-m",
            "panglot",
            "inspect",
            str(PACKAGES / "function"),
            "--json",
        ]
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=60)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["settings"]["request_memory"]["value"] == 100 * MIB


def test_importing_looks_at_nothing() -> None:
    """What the machine allows is looked up when settings are made, not when the package is imported."""
    code = "import sys; sys.addaudithook(lambda name, what: name == 'open' and print(what[0])); import panglot.settings"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "/sys/" not in done.stdout
    assert "/proc/" not in done.stdout
