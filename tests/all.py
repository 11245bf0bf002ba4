"""The tests of a tier: first side by side, then those that compare speeds, one after the other.

No test is run twice: one that fails beside others has a fault, or finds one.
"""

from __future__ import annotations

import compileall
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from support import two_fronts

PASSED, NOTHING = 0, 5
AT_ONCE = min(4, 2 + (os.cpu_count() or 1))
"""More than there are cores: tests often wait. With one more, a quarter of the time of two cores went by unused."""


def pytest(*arguments: str) -> int:
    return subprocess.run([sys.executable, "-m", "pytest", *arguments], check=False).returncode


def quiet_files() -> list[str]:
    """The files that hold tests to be run alone: to read all others again would take longer than these tests."""
    return sorted(str(path) for path in Path("tests").rglob("test_*.py") if "pytest.mark.quiet" in path.read_text())


def main(tier: str, arguments: Sequence[str]) -> int:
    # A shell that starts us in the background has us ignore interrupts, and with us all that a test interrupts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Where the environment forbids to keep what is compiled, each of a thousand servers would compile the source anew.
    compileall.compile_dir("src", quiet=2)
    chosen = ("--tier", tier)
    codes = [pytest(*chosen, "-n", str(AT_ONCE), "--dist", "worksteal", "-m", "not quiet", *arguments)]
    # Speeds are those of one front.
    if not two_fronts.FRONTS:
        codes.append(pytest(*chosen, "-m", "quiet", *(arguments or quiet_files())))
    return max((code for code in codes if code != NOTHING), default=PASSED)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
