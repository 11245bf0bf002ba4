"""The thread that owns all jobs: it takes commands, does a group of them in one transaction, and reports once.

The loop puts commands and goes on: it never waits for a disk. While the thread syncs one group, the next group gathers,
so groups need no timer. There is one thread with one connection: nothing is ever locked, and the log can always shrink.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import signal
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from panglot.errors import StartError
from panglot.jobs.clock import SteadyClock
from panglot.jobs.job import DISK, UNAVAILABLE, JobLimits, JobTrouble, NewJob
from panglot.jobs.storage import database
from panglot.jobs.storage.commands import JobTables
from panglot.jobs.storage.folder import NO_SPACE, JobFolder, is_remote, remove

MOST_COMMANDS, MOST_BYTES = 256, 32 << 20
"""Commands, and bytes of new bodies, that one transaction takes."""
MOST_FAILURES = 3
"""Transactions that may fail in a row before the store counts as broken."""

log = logging.getLogger("panglot.jobs")
Result = Any
Report = tuple[Callable[[Result], None], Result]
Deliver = Callable[[list[Report]], None]


class StoreCommand(NamedTuple):
    """A method of JobTables, or of its queries, by name; its result, or a JobTrouble, goes to `then`."""

    name: str
    arguments: tuple[Any, ...]
    then: Callable[[Result], None]
    reads: bool = False
    size: int = 0


def _at_once(reports: list[Report]) -> None:
    for then, result in reports:
        then(result)


class JobStore:
    """All jobs of a server, in a folder or in memory."""

    def __init__(
        self, path: Path | None, limits: JobLimits, deliver: Deliver = _at_once, synchronous: str = "FULL"
    ) -> None:
        """`deliver` takes the results of a transaction, on the thread; `synchronous` is for tests."""
        self.folder = JobFolder(path) if path is not None else None
        self.durable = path is not None
        self.limits = limits
        self.now = SteadyClock().now
        """The clock by which stored jobs are due."""
        self.counts: Counter[tuple[str, int]] = Counter()
        """Jobs by model and state, as of the last commit."""
        self.jobs = self.bytes = 0
        self.commits = self.commands = 0
        self.commit_seconds = 0.0
        self.failures = 0
        """Transactions in a row that the disk has failed."""
        self._deliver = deliver
        self._synchronous = synchronous
        self._queue: queue.SimpleQueue[StoreCommand | None] = queue.SimpleQueue()
        self._doubtful: list[Path] = []
        self._thread: threading.Thread | None = None
        self.tables: JobTables

    # The caller's side

    def open(self) -> list[str]:
        """Open the folder and start the thread. Returns the losses, in sentences for the log. Raises StartError."""
        if self.folder is None:
            opened = database.in_memory()
        else:
            self.folder.claim()
            try:
                opened = database.open_in(self.folder, self._synchronous)
                database.tidy(self.folder, opened)
            except StartError:
                self.folder.close()
                raise
            except (OSError, sqlite3.Error) as error:
                self.folder.close()
                raise StartError(f"--jobs {self.folder.path}: {error}") from None
            if is_remote(self.folder.path):
                log.warning(
                    "--jobs %s is on a file system of the network: one server alone may use it", self.folder.path
                )
        self.tables = JobTables(opened.connection, self.folder, self.limits, self.now)
        self._recover()
        self._thread = threading.Thread(target=self._run, name="panglot-jobs", daemon=True)
        self._thread.start()
        return opened.report

    def _recover(self) -> None:
        tables = self.tables
        try:
            tables.count()
            tables.begin(())
            tables.recover()
            tables.database.execute("COMMIT")
        except sqlite3.Error as error:
            self._release()
            where = self.folder.path if self.folder is not None else "memory"
            raise StartError(f"--jobs {where}: {error}", fix="free some space on its disk") from None
        self._publish()

    def write(self, name: str, *arguments: Any, then: Callable[[Result], None], size: int = 0) -> None:
        """Have a command done and committed; `then` gets its result or a JobTrouble."""
        self._queue.put(StoreCommand(name, arguments, then, size=size))

    def submit(self, job: NewJob, then: Callable[[Result], None]) -> None:
        """Store a job; `then` gets it with whether it is new, or a JobTrouble, once it is on disk.

        Commands that were put shortly before may be done after it: all submits of a transaction are done together.
        """
        self._queue.put(StoreCommand("submit", (job,), then, size=len(job.body)))

    def adopt(self, job: NewJob, accepted: float, started: float, then: Callable[[Result], None]) -> None:
        """Store a job that runs already; `then` gets it, or a JobTrouble, or None where it was stored before."""
        self._queue.put(StoreCommand("adopt", (job, accepted, started), then, size=len(job.body)))

    def read(self, name: str, *arguments: Any, then: Callable[[Result], None]) -> None:
        """Have a query answered, after the commands that were put before it."""
        self._queue.put(StoreCommand(name, arguments, then, reads=True))

    def close(self) -> None:
        """Finish the commands that were put, close the database and release the folder."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()
            self._thread = None

    @property
    def trouble(self) -> str:
        """Why no job is accepted now; empty: jobs are accepted."""
        if self.failures >= MOST_FAILURES:
            return "the disk of jobs fails"
        return "the disk of jobs is full" if self.folder is not None and self.folder.low else ""

    # The thread

    def _run(self) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        while True:
            group, ending = self._gather()
            reports: list[Report] = []
            writes: list[StoreCommand] = []
            for command in group:
                # A query must see the commands that were put before it: they are committed first.
                if not command.reads:
                    writes.append(command)
                    continue
                if writes:
                    reports += self._write(writes)
                    writes = []
                reports.append((command.then, self._read(command)))
            if writes:
                reports += self._write(writes)
            if reports:
                self._deliver(reports)
            if ending:
                self._release()
                return

    def _gather(self) -> tuple[list[StoreCommand], bool]:
        """All commands that wait, up to a limit, and whether the thread ends after them."""
        group: list[StoreCommand] = []
        size = 0
        command = self._queue.get()
        with contextlib.suppress(queue.Empty):
            while command is not None:
                group.append(command)
                size += command.size
                if len(group) >= MOST_COMMANDS or size >= MOST_BYTES:
                    break
                command = self._queue.get_nowait()
        return group, command is None

    def _release(self) -> None:
        with contextlib.suppress(sqlite3.Error):
            self.tables.database.close()
        if self.folder is not None:
            self.folder.close()

    def _read(self, command: StoreCommand) -> Result:
        try:
            return getattr(self.tables.queries, command.name)(*command.arguments)
        except JobTrouble as trouble:
            return trouble
        except Exception as error:
            # All jobs depend on this thread: it goes on, whatever one command meets.
            if not isinstance(error, sqlite3.Error | OSError):
                log.exception("the query %s of jobs failed", command.name)
            return JobTrouble(UNAVAILABLE, f"jobs cannot be read: {error}")

    def _write(self, commands: list[StoreCommand]) -> list[Report]:
        """Do all in one transaction. If that fails, do each alone, so that only the guilty command is refused."""
        began = time.monotonic()
        results, error = self._transaction(commands)
        full = error is not None and _is_full(error)
        if full:
            self._make_space()
        if error is not None and (len(commands) > 1 or full):
            results = []
            for command in commands:
                alone, error = self._transaction([command])
                results += alone if error is None else [self._refusal(error)]
        elif error is not None:
            results = [self._refusal(error)]
        self.commands += len(commands)
        self.commit_seconds += time.monotonic() - began
        self._publish()
        return [(command.then, result) for command, result in zip(commands, results, strict=True)]

    def _refusal(self, error: Exception) -> JobTrouble:
        if _is_full(error):
            self._make_space()
            return JobTrouble(DISK, "the disk that jobs are stored on is full; try again later")
        self.failures += 1
        log.error("jobs cannot be stored: %s", error)
        return JobTrouble(UNAVAILABLE, "jobs cannot be stored at the moment; try again later")

    def _make_space(self) -> None:
        """Give up the ballast, and begin the log again after each commit: a growing log would take the freed space."""
        if self.folder is not None and not self.folder.low:
            log.error("--jobs %s: the disk is full; no job is accepted until there is space", self.folder.path)
            self.folder.drop_ballast()
        with contextlib.suppress(sqlite3.Error):
            self.tables.database.execute("PRAGMA wal_autocheckpoint = 1").fetchone()
            self.tables.database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()

    def _transaction(self, commands: list[StoreCommand]) -> tuple[list[Result], Exception | None]:
        tables, committing = self.tables, False
        new_jobs = [command.arguments[0] for command in commands if command.name == "submit"]
        adopted = [command.arguments[0] for command in commands if command.name == "adopt"]
        counted = tables.jobs, tables.bytes, tables.next_seq, tables.counts.copy()
        try:
            tables.begin(new_jobs + adopted)
            submitted = iter(tables.submit(new_jobs) if new_jobs else ())
            results = [
                next(submitted) if command.name == "submit" else getattr(tables, command.name)(*command.arguments)
                for command in commands
            ]
            tables.sync_names()
            committing = True
            tables.database.execute("COMMIT")
        except Exception as error:
            if not isinstance(error, sqlite3.Error | OSError):
                log.exception("storing jobs failed")
            with contextlib.suppress(sqlite3.Error):
                if tables.database.in_transaction:
                    tables.database.execute("ROLLBACK")
            tables.restore(counted)
            if committing:
                # In doubt: perhaps only the sync failed. After a crash the rows may be there, and need their files.
                self._doubtful += tables.made
            else:
                for path in tables.made:
                    remove(path)
            return [], error
        self.commits += 1
        self.failures = 0
        # Only now. The rows of `gone` are removed for sure, and this commit has replaced the doubtful one in the log.
        for path in (*tables.gone, *self._doubtful):
            remove(path)
        self._doubtful = []
        return results, None

    def _publish(self) -> None:
        """Show the counts of the last commit to the loop."""
        # A copy, stored at once: the loop reads while this thread counts on.
        tables = self.tables
        self.counts, self.jobs, self.bytes = tables.counts.copy(), tables.jobs, tables.bytes


def _is_full(error: Exception) -> bool:
    if isinstance(error, OSError):
        return error.errno in NO_SPACE
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code & 255 == sqlite3.SQLITE_FULL
