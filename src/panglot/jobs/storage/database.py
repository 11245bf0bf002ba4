"""The database of jobs: its tables, how it is opened, and how a damaged one is saved."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from pathlib import Path
from typing import Any

from panglot.errors import StartError
from panglot.jobs.job import fault_text
from panglot.jobs.storage import salvage
from panglot.jobs.storage.folder import ANSWERS, BODIES, JobFolder, is_remote, remove
from panglot.jobs.storage.rescue import COLUMNS, Rescue
from panglot.terminal.text import counted

VERSION, APPLICATION = 1, 0x50474A42
SCHEMA = """
CREATE TABLE job (
  seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, model TEXT NOT NULL, route TEXT NOT NULL, owner TEXT NOT NULL,
  key TEXT, digest BLOB, state INTEGER NOT NULL, attempts INTEGER NOT NULL, crashes INTEGER NOT NULL,
  accepted REAL NOT NULL, started REAL, ended REAL, due REAL NOT NULL, expires REAL NOT NULL, retain REAL NOT NULL,
  webhook TEXT, own TEXT NOT NULL, head BLOB NOT NULL, lane TEXT NOT NULL, rerun INTEGER NOT NULL,
  run_timeout REAL NOT NULL, size INTEGER NOT NULL, crc INTEGER NOT NULL, filed INTEGER NOT NULL,
  status INTEGER, answer_head BLOB, answer_size INTEGER NOT NULL, answer_crc INTEGER, answer_filed INTEGER NOT NULL,
  parts BLOB, fault TEXT);
CREATE TABLE payload (position INTEGER PRIMARY KEY, bytes BLOB NOT NULL);
CREATE TABLE outbox (
  number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, seq INTEGER NOT NULL, event TEXT NOT NULL, url TEXT NOT NULL,
  payload BLOB, attempts INTEGER NOT NULL, due REAL NOT NULL, fault TEXT);
CREATE INDEX job_next ON job (model, seq) WHERE state = 0;
CREATE INDEX job_running ON job (seq) WHERE state = 1;
CREATE INDEX job_due ON job (due);
CREATE UNIQUE INDEX job_key ON job (owner, model, key) WHERE key IS NOT NULL;
CREATE INDEX outbox_due ON outbox (due);
CREATE INDEX outbox_seq ON outbox (seq);
"""
UPGRADES: tuple[str, ...] = ()
"""The statements that turn each version of the tables into the next one, from version 1 on."""


class Opened:
    """An open database, and what was found when it was opened."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.report: list[str] = []
        """The losses, in sentences for the log."""
        self.was_damaged = False


def in_memory() -> Opened:
    """A database that ends with the process."""
    connection = _connect(":memory:", "MEMORY", "OFF")
    _create(connection)
    return Opened(connection)


def open_in(folder: JobFolder, synchronous: str = "FULL") -> Opened:
    """Open the current database of a folder that is claimed; of a damaged one, save the whole rows. Raises StartError.

    `synchronous` is OFF for a folder in memory, and in tests.
    """
    name = folder.current()
    try:
        if name:
            return Opened(_existing(folder, name, synchronous))
        # A new folder, or the first start ended early: no job was accepted yet, so nothing is lost.
        for path in folder.path.glob("jobs-*.db*"):
            path.unlink()
        connection = _at(folder, "jobs-1.db", synchronous)
        _create(connection)
        folder.switch("jobs-1.db")
        return Opened(connection)
    except OSError as error:
        raise StartError(f"--jobs {folder.path}: {error.strerror}") from None
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 255
        if not name or code not in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            raise StartError(f"--jobs {folder.path}: {error}") from None
        try:
            return _salvaged(folder, name, str(error), synchronous)
        except (OSError, sqlite3.Error) as failure:
            message = f"--jobs {folder.path}: {name} is damaged ({error}), and cannot be saved: {failure}"
            raise StartError(message, fix="free some space, or move the folder away to begin again") from None


def _connect(path: Path | str, journal: str, synchronous: str) -> sqlite3.Connection:
    database = sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=64, timeout=0)
    try:
        # Before the journal mode: then WAL makes no file of shared memory, and no other connection can open the file.
        database.execute("PRAGMA locking_mode = EXCLUSIVE")
        database.execute("PRAGMA auto_vacuum = INCREMENTAL")
        database.execute(f"PRAGMA journal_mode = {journal}").fetchone()
        database.execute(f"PRAGMA synchronous = {synchronous}")
        # Otherwise free pages hold old copies of rows, which salvage would take for jobs.
        database.execute("PRAGMA secure_delete = ON").fetchone()
        # Otherwise temporary files lie in /tmp, and a full /tmp looks like a full folder of jobs.
        database.execute("PRAGMA temp_store = MEMORY")
        database.execute("PRAGMA cache_size = -8192")
        database.execute("PRAGMA wal_autocheckpoint = 1000").fetchone()
        database.execute("PRAGMA journal_size_limit = 16777216").fetchone()
    except sqlite3.Error:
        database.close()
        raise
    return database


def _at(folder: JobFolder, name: str, synchronous: str) -> sqlite3.Connection:
    # WAL needs memory that all users of the file share. File systems of a network have no such memory.
    return _connect(folder.path / name, "TRUNCATE" if is_remote(folder.path) else "WAL", synchronous)


def _create(database: sqlite3.Connection) -> None:
    about = f"PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {VERSION};"
    database.executescript(f"BEGIN IMMEDIATE; {SCHEMA} {about} COMMIT;")


def _existing(folder: JobFolder, name: str, synchronous: str) -> sqlite3.Connection:
    path = folder.path / name
    if not path.exists() or not path.stat().st_size:
        raise sqlite3.DatabaseError("it is missing or empty")
    if path.stat().st_size % salvage.PAGE:
        # Before SQLite opens it: SQLite fills the last page with zeros, and then a row that was cut looks whole.
        raise sqlite3.DatabaseError("it was cut within a page")
    # Before the opening, which makes a log. A server that ends in order leaves none.
    unclean = Path(f"{path}-wal").exists()
    database = _at(folder, name, synchronous)
    try:
        if _pragma(database, "application_id") != APPLICATION:
            raise sqlite3.DatabaseError("it is no database of jobs")
        version = _pragma(database, "user_version")
        if version > VERSION:
            message = f"--jobs {folder.path}: {name} was written by a later Panglot"
            fix = f"its version is {version}, and this Panglot knows {VERSION}: use that Panglot, or another folder"
            raise StartError(message, fix=fix)
        for number, statements in enumerate(UPGRADES[version - 1 :], version + 1):
            database.executescript(f"BEGIN IMMEDIATE; {statements} PRAGMA user_version = {number}; COMMIT;")
        wrong_size = path.stat().st_size != _pragma(database, "page_count") * _pragma(database, "page_size")
        if unclean or wrong_size:
            verdict = database.execute("PRAGMA quick_check(1)").fetchone()[0]
            if verdict != "ok":
                raise sqlite3.DatabaseError(verdict)
    except (sqlite3.Error, StartError, OSError):
        with contextlib.suppress(sqlite3.Error):
            database.close()
        raise
    return database


def _pragma(database: sqlite3.Connection, name: str) -> int:
    return int(database.execute(f"PRAGMA {name}").fetchone()[0])


# A damaged database


def _salvaged(folder: JobFolder, damaged: str, why: str, synchronous: str) -> Opened:
    """Make a new database of all whole rows. The damaged one stays where it is, under its old name."""
    old = folder.path / damaged
    name = f"jobs-{int(damaged.partition('-')[2].partition('.')[0]) + 1}.db"
    for path in folder.path.glob(name + "*"):
        path.unlink()
    order = COLUMNS.index("state"), COLUMNS.index("attempts")
    rows = salvage.read(old, Path(f"{old}-wal"), len(COLUMNS), order)
    rescue = Rescue(folder, rows)
    opened = Opened(_at(folder, name, synchronous))
    database = opened.connection
    _create(database)
    database.execute("BEGIN IMMEDIATE")
    saved = 0
    for job in rescue.jobs():
        saved += _insert(database, job, rows.payloads)
    for message in rows.outbox.values():
        database.execute("INSERT OR IGNORE INTO outbox VALUES (?,?,?,?,?,?,?,?,?)", message)
    for event in rescue.events:
        database.execute(
            "INSERT OR IGNORE INTO outbox (id, seq, event, url, attempts, due) VALUES (?,?,?,?,0,?)", event
        )
    database.execute("COMMIT")
    opened.report = [f"{damaged} is damaged ({why}); {name} holds {counted(saved, 'job')} of it", *rescue.report]
    folder.switch(name)
    opened.was_damaged = True
    return opened


def _insert(database: sqlite3.Connection, job: dict[str, Any], payloads: dict[int, bytes]) -> int:
    marks = ",".join("?" * len(COLUMNS))
    values = tuple(job[column] for column in COLUMNS)
    done = database.execute(f"INSERT OR IGNORE INTO job VALUES ({marks})", values).rowcount  # noqa: S608
    for position in (job["seq"] * 2, job["seq"] * 2 + 1):
        if position in payloads:
            database.execute("INSERT OR IGNORE INTO payload VALUES (?, ?)", (position, payloads[position]))
    return int(done > 0)


def shrink(database: sqlite3.Connection) -> None:
    """Give pages back where more than a quarter of them, and 10 MiB, are free."""
    free = _pragma(database, "freelist_count")
    if free > 2560 and free * 4 > _pragma(database, "page_count"):
        database.execute("PRAGMA incremental_vacuum(256)").fetchall()


def tidy(folder: JobFolder, opened: Opened) -> None:
    """Remove files without a row; after damage move them to lost/. Fail jobs whose body is missing."""
    database = opened.connection
    for kind, column in ((BODIES, "filed"), (ANSWERS, "answer_filed")):
        rows = database.execute(f"SELECT id, {column} FROM job WHERE {column}")  # noqa: S608
        known = {folder.file(kind, name, number).name: name for name, number in rows}
        present = {path.name for path in (folder.path / kind).iterdir()}
        orphans = present - known.keys()
        for name in orphans:
            if opened.was_damaged:
                (folder.path / "lost").mkdir(mode=0o700, exist_ok=True)
                (folder.path / kind / name).rename(folder.path / "lost" / f"{name}.{kind}")
            else:
                remove(folder.path / kind / name)
        if orphans:
            fate = "they are in lost/" if opened.was_damaged else "they belong to no accepted job, and are removed"
            opened.report.append(f"{counted(len(orphans), 'file')} of {kind} without a job: {fate}")
        missing = [known[name] for name in known.keys() - present]
        now = time.time()
        for job in missing if kind == BODIES else ():
            opened.report.append(f"job {job}: its body is missing")
            fault = fault_text("body_damaged", "the body of the job is missing in the folder of jobs")
            database.execute(
                "UPDATE job SET state = 3, fault = ?, ended = ?, due = ? + retain WHERE id = ? AND state IN (0, 1, 6)",
                (fault, now, now, job),
            )
