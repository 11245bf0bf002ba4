"""Stores jobs and runs them, in a process whose operations are recorded, and writes down each promise that it gives.

Usage: job_writer.py FOLDER PROMISES [WHAT], where WHAT is a sync that is left out, so that a test can see it: `names`
those of the folders of files, `files` those of the files, `commits` those of the database, `parents` those of new
folders.
"""

from __future__ import annotations

import os
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from panglot.errors import StartError
from panglot.jobs.job import DONE, JobOutcome, JobTrouble, NewJob, Webhook, new_id
from panglot.jobs.storage import folder as job_folder
from support.job_store import Opened

ACCEPTED, ANSWERED, CANCELLED, TOLD = "accepted", "answered", "cancelled", "told"
LIVES, JOBS = 2, 60


def body_of(name: str) -> bytes:
    """The body of a job: every sixth is stored as a file."""
    number = zlib.crc32(name.encode())
    return b"%d " % number * (8000 if number % 6 == 0 else 40)


def answer_of(name: str) -> bytes:
    number = zlib.crc32(name.encode()[::-1])
    return b"%d " % number * (8000 if number % 6 == 0 else 40)


def leave_out(what: str, opened: Opened) -> None:
    """Do without a kind of sync from here on."""
    folders = opened.store.folder._folders.values() if opened.store.folder is not None else ()
    real = os.fsync
    if what == "names":
        os.fsync = lambda file: None if file in folders else real(file)
    elif what == "files":
        os.fsync = lambda file: real(file) if file in folders else None


class Writer:
    """One life of a store."""

    def __init__(self, opened: Opened, promises: int) -> None:
        self.opened = opened
        self.promises = promises

    def promise(self, word: str, name: str) -> Callable[[Any], None]:
        """Told by the store's thread, once a command is done."""

        def then(result: Any) -> None:
            # None: there is no such job, because it was refused. To forget an event has no other result.
            if not isinstance(result, JobTrouble) and (result is not None or word == TOLD):
                os.write(self.promises, f"{word} {name}\n".encode())

        return then

    def live(self) -> None:
        store = self.opened.store
        for number in range(JOBS):
            name = new_id()
            webhook = Webhook("http://example.com/") if number % 3 == 0 else None
            job = NewJob(name, "m", "/predict", b"head", body_of(name), webhook=webhook)
            store.submit(job, self.promise(ACCEPTED, name))
            if number % 10 == 7:
                store.write("cancel", name, then=self.promise(CANCELLED, name))
            if number % 5 == 4:
                self._run()
            if number % 20 == 13:
                self._tell()

    def _run(self) -> None:
        try:
            claimed = self.opened.write("claim", "m", 3)
        except JobTrouble:
            return
        for job, _, _, _, _ in claimed:
            outcome = JobOutcome(DONE, 200, b"text/plain", answer_of(job.id))
            self.opened.store.write(
                "finish", job.seq, job.attempts, outcome, then=self.promise(ANSWERED, job.id), size=len(outcome.body)
            )

    def _tell(self) -> None:
        for event in self.opened.read("due_webhooks", 9e12, 2):
            self.opened.store.write("delivered", event.number, then=self.promise(TOLD, event.id))


def main(folder: Path, promises: Path, what: str) -> None:
    if what == "parents":
        job_folder.sync_folder = lambda path: None
    file = os.open(promises, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    for _ in range(LIVES):
        try:
            opened = Opened(folder, synchronous="NORMAL" if what == "commits" else "FULL")
        except StartError as error:
            print(f"does not start: {error}")
            return
        leave_out(what, opened)
        Writer(opened, file).live()
        opened.store.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:] or [""])
