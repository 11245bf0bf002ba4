"""All tests: side by side, then those that compare speeds, then once more whatever failed.

What fails is run again alone: a fault fails twice, a process that was starved for a moment does not. Both are shown.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence

PASSED, FAILED, NOTHING = 0, 1, 5
AT_ONCE = max(2, min(4, os.cpu_count() or 2))


def pytest(*arguments: str) -> int:
    return subprocess.run([sys.executable, "-m", "pytest", *arguments], check=False).returncode


def main(arguments: Sequence[str]) -> int:
    codes = {
        pytest("-n", str(AT_ONCE), "--dist", "loadfile", "-m", "not quiet", *arguments),
        pytest("-m", "quiet", *arguments),
    } - {PASSED, NOTHING}
    if codes == {FAILED}:
        print("\nonce more, those that failed:", flush=True)
        return pytest("--last-failed", "--last-failed-no-failures", "none", *arguments)
    return max(codes, default=PASSED)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
