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

from panglot.jobs.job import CANCELLED, DONE, JobTrouble
from support import job_writer, power_cuts
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


def unkept(opened: Opened, promises: list[list[str]]) -> list[str]:
    jobs = {job.id: job for job in opened.read("listed", (), "", 0, 1000)}
    waiting = {event.id for event in opened.read("due_webhooks", 9e12, 1000)}
    broken = []
    for word, name in promises:
        if word == job_writer.TOLD:
            broken += [f"{name} is told again"] if name in waiting else []
            continue
        job = jobs.get(name)
        expected = {job_writer.ANSWERED: DONE, job_writer.CANCELLED: CANCELLED}.get(word)
        if job is None:
            broken.append(f"{name} is lost")
        elif expected is not None and job.state != expected:
            broken.append(f"{name} is not {word} any more")
    return broken


def half_written(opened: Opened) -> list[str]:
    """Jobs that are there, and whose body or answer is not."""
    broken = [sentence for sentence in opened.report if "damaged" in sentence or "missing" in sentence]
    for job in opened.read("listed", (DONE,), "", 0, 1000):
        try:
            answer = opened.read("answer", job.id)
        except JobTrouble as trouble:
            broken.append(str(trouble))
        else:
            broken += [] if answer.body == job_writer.answer_of(job.id) else [f"{job.id} has another answer"]
    for claimed in opened.write("claim", "m", 1000):
        if claimed.body != job_writer.body_of(claimed.job.id):
            broken.append(f"{claimed.job.id} has another body")
    for job in opened.read("listed", (), "", 0, 1000):
        broken += [f"{job.id}: {job.error['message']}"] if job.error else []
    return broken


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
