"""After a power cut at any moment every promise is kept; and a sync that is left out breaks some: the test sees it.

So it is when any operation of the disk fails.
"""

from __future__ import annotations

import errno
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from support import job_writer, power_cuts
from support.job_promises import half_written, unkept
from support.job_store import Opened
from support.power_cuts import Operation
from support.server import ROOT
from support.traffic import times

CUTS = times(40, 400)
FAILURES = times(5, 200)


class Recording(NamedTuple):
    """What a process did below a folder, and where the first of its promises stands."""

    root: Path
    operations: list[Operation]

    @property
    def first(self) -> int:
        return next(number for number, each in enumerate(self.operations) if self.promises(each))

    def promises(self, operation: Operation) -> list[list[str]]:
        """The promises that an operation gives: word and name."""
        if operation.kind != "W" or operation.path != str(self.root / "promises"):
            return []
        return [line.split() for line in operation.data.decode().splitlines()]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = power_cuts.recorder(tmp_path_factory.mktemp("library"))
    if made is None:
        pytest.skip("no C compiler is installed")
    return made


def recording(library: Path, folder: Path, leave_out: str = "", **settings: object) -> Recording:
    """What a writer of jobs did; `settings` are those of the library."""
    root, log = folder / "disk", folder / "log"
    root.mkdir()
    environment = {
        **os.environ,
        "LD_PRELOAD": str(library),
        "CUTS_ROOT": str(root),
        "CUTS_LOG": str(log),
        "PYTHONPATH": str(ROOT / "tests"),
        **{f"CUTS_{name.upper()}": str(value) for name, value in settings.items()},
    }
    words = [sys.executable, job_writer.__file__, str(root / "new" / "folder" / "jobs"), str(root / "promises")]
    subprocess.run([*words, leave_out], env=environment, check=True, timeout=120)
    return Recording(root, power_cuts.recorded(log))


def broken_promises(done: Recording, folder: Path, chance: random.Random) -> list[str]:
    """Cut the power at a random moment, open what is left, and compare."""
    moment = chance.randrange(done.first + 1, len(done.operations) + 1)
    if chance.random() < 0.5:
        # Directly behind a promise, where nothing that follows can make it true by chance.
        while not done.promises(done.operations[moment - 1]):
            moment -= 1
    before = done.operations[:moment]
    target = folder / "left"
    power_cuts.cut(before, done.root, target, chance)
    promises = [promise for operation in before for promise in done.promises(operation)]
    # Nothing is lost here any more: no need to wait for a disk.
    opened = Opened(target / "new" / "folder" / "jobs", synchronous="OFF")
    try:
        return [*unkept(opened, promises), *half_written(opened)]
    finally:
        opened.store.close()
        shutil.rmtree(target)


def test_every_promise_is_kept_after_a_power_cut_at_any_moment(library: Path, tmp_path: Path) -> None:
    done = recording(library, tmp_path)
    given = [promise for operation in done.operations for promise in done.promises(operation)]
    assert len(given) > 150
    for number in range(CUTS):
        assert broken_promises(done, tmp_path, random.Random(number)) == [], f"cut {number}"


@pytest.mark.parametrize("what", ["names", "files", "commits", "parents"])
def test_a_sync_that_is_left_out_breaks_promises(what: str, library: Path, tmp_path: Path) -> None:
    done = recording(library, tmp_path, leave_out=what)
    assert any(broken_promises(done, tmp_path, random.Random(number)) for number in range(CUTS))


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO], ids=["full", "broken"])
def test_every_promise_is_kept_when_an_operation_of_the_disk_fails(error: int, library: Path, tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    operations = len(recording(library, tmp_path / "whole").operations)
    for number in range(FAILURES):
        # Once, or from then on.
        more = {"ever": 1} if number % 2 else {}
        folder = tmp_path / str(number)
        folder.mkdir()
        fail = random.Random(number).randrange(1, operations)
        done = recording(library, folder, fail=fail, error=error, **more)
        promises = [promise for operation in done.operations for promise in done.promises(operation)]
        opened = Opened(done.root / "new" / "folder" / "jobs", synchronous="OFF")
        assert [*unkept(opened, promises), *half_written(opened)] == [], f"operation {fail}"
        opened.store.close()
