"""All tests: side by side, then those that compare speeds, then once more whatever failed.

What fails is run again alone: a fault fails twice, a process that was starved for a moment does not. Both are shown,
and those that passed only alone are listed at the end. More than a few of them are a fault too.
"""

from __future__ import annotations

import compileall
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

PASSED, FAILED, NOTHING = 0, 1, 5
AT_ONCE = min(4, 1 + (os.cpu_count() or 1))
"""More than there are cores: a test often waits."""
FAILURES = Path(".pytest_cache/v/cache/lastfailed")
MOST_FICKLE = 3
"""So many tests may fail beside others and pass alone."""


def pytest(*arguments: str) -> int:
    return subprocess.run([sys.executable, "-m", "pytest", *arguments], check=False).returncode


def failures() -> set[str]:
    """The tests that failed the last time they ran."""
    return set(json.loads(FAILURES.read_text())) if FAILURES.is_file() else set()


def quiet_files() -> list[str]:
    """The files that hold tests to be run alone: to read all others again would take longer than these tests."""
    return sorted(str(path) for path in Path("tests").rglob("test_*.py") if "pytest.mark.quiet" in path.read_text())


def main(arguments: Sequence[str]) -> int:
    FAILURES.unlink(missing_ok=True)
    # Where the environment forbids to keep what is compiled, each of a thousand servers would compile the source anew.
    compileall.compile_dir("src", quiet=2)
    codes = {
        pytest("-n", str(AT_ONCE), "--dist", "worksteal", "-m", "not quiet", *arguments),
        pytest("-m", "quiet", *(arguments or quiet_files())),
    } - {PASSED, NOTHING}
    if codes != {FAILED}:
        return max(codes, default=PASSED)
    first = failures()
    print("\nonce more, those that failed:", flush=True)
    code = pytest("--last-failed", "--last-failed-no-failures", "none", *arguments)
    return code or judge(first - failures())


def judge(fickle: set[str]) -> int:
    """Show the tests that failed beside others and passed alone; too many of them fail the run."""
    print(f"\nfailed beside others and passed alone ({len(fickle)}; at most {MOST_FICKLE} may):")
    for name in sorted(fickle):
        print(f"  {name}")
    return FAILED if len(fickle) > MOST_FICKLE else PASSED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
