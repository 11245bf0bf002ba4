"""A real ext4 loses its power while jobs are stored: every promise that was heard before is kept."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

from support import job_writer
from support.ext4_disk import Disk, disk
from support.job_promises import half_written, unkept
from support.job_store import Opened
from support.server import ROOT, wait_until
from support.traffic import times

CUTS = times(4, 60)


def promises_in(file: Path) -> list[list[str]]:
    """The promises that were given until now; a line that is being written is none."""
    text = file.read_text() if file.exists() else ""
    return [line.split() for line in text[: text.rfind("\n") + 1].splitlines()]


def broken_by_a_cut(machine: Disk, folder: Path, chance: random.Random, leave_out: str = "") -> list[str]:
    """Cut the power after a random number of promises, open what is left, and compare."""
    jobs, promises = machine.path / "new" / "jobs", folder / "promises"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
    words = [sys.executable, job_writer.__file__, str(jobs), str(promises), leave_out]
    with (folder / "writer.log").open("wb") as log:
        writer = subprocess.Popen(words, env=environment, stdout=log, stderr=log)
    wanted = chance.randrange(1, 140)
    try:
        wait_until(lambda: len(promises_in(promises)) >= wanted or writer.poll() is not None, 120)
        # Read first: a sync that overlaps the cut may report success and be lost, on any disk.
        heard = promises_in(promises)
        machine.cut()
    finally:
        writer.kill()
        writer.wait()
    machine.unmount()
    machine.mount()
    assert heard
    # Nothing is lost here any more: no need to wait for a disk.
    opened = Opened(jobs, synchronous="OFF")
    try:
        return [*unkept(opened, heard), *half_written(opened)]
    finally:
        opened.store.close()
        shutil.rmtree(machine.path / "new")
        promises.unlink()


def test_every_promise_that_was_heard_is_kept(tmp_path: Path) -> None:
    with disk(tmp_path) as machine:
        for number in range(CUTS):
            assert broken_by_a_cut(machine, tmp_path, random.Random(number)) == [], f"cut {number}"


def test_a_database_that_syncs_nothing_breaks_promises(tmp_path: Path) -> None:
    with disk(tmp_path) as machine:
        assert any(broken_by_a_cut(machine, tmp_path, random.Random(number), "commits") for number in range(CUTS))
