"""`make soak`: the tests with their full counts, for hours. Some files run side by side: most of them wait much.

How each file went is kept below `.cache/soak`, for this state of the source and the tests: a run that was stopped goes
on with the files that have not passed yet. `--again` forgets what has passed.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / ".cache" / "soak"
USES = re.compile(r"SOAK|(?<![.\w])(times|rounds)\(")
"""A file that matches has more to do when it is asked for full counts; `cpu_times()` is something else."""


AT_ONCE = 1 + (os.cpu_count() or 1)


def files(chosen: Sequence[str]) -> list[Path]:
    """The test files with full counts, or those of them whose path has one of the chosen words in it."""
    found = sorted(path for path in (ROOT / "tests").rglob("test_*.py") if USES.search(path.read_text()))
    return [path for path in found if not chosen or any(word in str(path) for word in chosen)]


def state() -> str:
    """A digest of all source and tests: what passed before a change has to pass again."""
    digest = hashlib.sha256()
    for path in sorted([*(ROOT / "src").rglob("*"), *(ROOT / "tests").rglob("*")]):
        if path.is_file() and path.suffix not in (".pyc", ".pyo") and "egg-info" not in str(path):
            digest.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


class Record:
    """Which files have passed, in a file of its own."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.seconds: dict[str, float] = json.loads(path.read_text()) if path.is_file() else {}

    def passed(self, name: str, seconds: float) -> None:
        self.seconds[name] = round(seconds, 1)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps(self.seconds, indent=1))


def run(path: Path) -> int:
    """Run one file with full counts; what it says is shown only where it fails."""
    command = [sys.executable, "-m", "pytest", "-q", "--timeout", "7200", str(path)]
    output = KEPT / f"{path.relative_to(ROOT / 'tests')}.txt".replace("/", "-")
    output.parent.mkdir(parents=True, exist_ok=True)
    with output.open("w") as log:
        environment = {**os.environ, "PANGLOT_SOAK": "1"}
        code = subprocess.run(command, cwd=ROOT, env=environment, stdout=log, stderr=log, check=False).returncode
    if code:
        print(output.read_text()[-4000:], flush=True)
    return code


def timed(path: Path) -> tuple[str, bool, float]:
    """Run one file: its name, whether it passed, and how long it took."""
    began = time.monotonic()
    good = run(path) == 0
    return str(path.relative_to(ROOT)), good, time.monotonic() - began


def results(paths: list[Path], record: Record) -> Iterator[tuple[str, bool]]:
    """Run the files that have not passed yet, and say how each went and how far we are."""
    before = {name: path for path in paths if (name := str(path.relative_to(ROOT))) in record.seconds}
    for name in before:
        print(f"{name}: passed before, in {record.seconds[name]:.0f} s", flush=True)
        yield name, True
    with ThreadPoolExecutor(AT_ONCE) as threads:
        running = [threads.submit(timed, path) for path in paths if path not in before.values()]
        for number, done in enumerate(as_completed(running), 1 + len(before)):
            name, good, seconds = done.result()
            print(f"[{number}/{len(paths)}] {name}: {'passed' if good else 'FAILED'} in {seconds:.0f} s", flush=True)
            if good:
                record.passed(name, seconds)
            yield name, good


def main(arguments: Sequence[str]) -> int:
    record = Record(KEPT / f"{state()}.json")
    if "--again" in arguments:
        record.seconds.clear()
    chosen = [argument for argument in arguments if not argument.startswith("--")]
    paths = files(chosen)
    if not paths:
        print(f"no test file with full counts has {' or '.join(chosen)} in its path")
        return 2
    outcomes = dict(results(paths, record))
    failed = [name for name, good in outcomes.items() if not good]
    minutes = sum(record.seconds.values()) / 60
    print(f"{len(outcomes) - len(failed)} of {len(outcomes)} files passed, in {minutes:.0f} minutes")
    for name in failed:
        print(f"failed: {name}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
