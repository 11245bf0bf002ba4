"""The queries on the database of jobs. All of them run on the store's thread."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from panglot.jobs.job import DAMAGED, DueWebhook, Job, JobTrouble, StoredAnswer
from panglot.jobs.storage.folder import ANSWERS, BODIES, JobFolder
from panglot.jobs.storage.rescue import is_whole

SELECT = f"SELECT {', '.join(Job._fields)} FROM job "  # noqa: S608
Entry = TypeVar("Entry")


class JobQueries:
    """Reads jobs, their bodies and answers, and events that are due."""

    def __init__(self, database: sqlite3.Connection, folder: JobFolder | None) -> None:
        self.database = database
        self.folder = folder

    def get(self, name: str) -> Job | None:
        row = self.database.execute(SELECT + "WHERE id = ?", (name,)).fetchone()
        return Job(*row) if row is not None else None

    def by_key(self, owner: str, model: str, key: str) -> Job | None:
        row = self.database.execute(SELECT + "WHERE owner = ? AND model = ? AND key = ?", (owner, model, key))
        values = row.fetchone()
        return Job(*values) if values is not None else None

    def by_seq(self, seq: int) -> Job | None:
        row = self.database.execute(SELECT + "WHERE seq = ?", (seq,)).fetchone()
        return Job(*row) if row is not None else None

    def listed(self, states: Iterable[int], model: str, before: int, most: int) -> list[Job]:
        """The newest jobs, from below a sequence number on."""
        chosen, values = "", []
        numbers = sorted(states)
        if numbers:
            chosen, values = f"AND state IN ({marks(numbers)}) ", list[Any](numbers)
        if model:
            chosen, values = chosen + "AND model = ? ", [*values, model]
        rows = self.database.execute(
            SELECT + f"WHERE seq < ? {chosen}ORDER BY seq DESC LIMIT ?", (before or 1 << 62, *values, most)
        )
        return [Job(*row) for row in rows.fetchall()]

    def answer(self, name: str) -> StoredAnswer | None:
        """The answer of a job; None where there is none. Raises JobTrouble when it is damaged."""
        job = self.get(name)
        if job is None or job.status is None:
            return None
        position = job.seq * 2 + 1
        body: bytes | None = b""
        if job.answer_filed and self.folder is not None:
            body = self.folder.read(ANSWERS, job.id, job.answer_filed)
        elif job.answer_size:
            row = self.database.execute("SELECT bytes FROM payload WHERE position = ?", (position,)).fetchone()
            body = row[0] if row is not None else None
        if body is None or not is_whole(body, job.answer_size, job.answer_crc):
            raise JobTrouble(DAMAGED, f"the stored answer of job {name} is damaged")
        stored = job.parts or b""
        ends = tuple(int.from_bytes(stored[at : at + 8], "big") for at in range(0, len(stored), 8))
        return StoredAnswer(job.status, job.answer_head or b"", body, ends)

    def request(self, name: str) -> tuple[bytes, bytes] | None:
        """The head and the body of a job's request; None where they are removed."""
        job = self.get(name)
        if job is None:
            return None
        head, filed = self.database.execute("SELECT head, filed FROM job WHERE seq = ?", (job.seq,)).fetchone()
        body = self.body(job, filed)
        return (head, body) if body is not None else None

    def body(self, job: Job, filed: int) -> bytes | None:
        if filed and self.folder is not None:
            content = self.folder.read(BODIES, job.id, filed)
        else:
            row = self.database.execute("SELECT bytes FROM payload WHERE position = ?", (job.seq * 2,)).fetchone()
            content = row[0] if row is not None else None
        return content.partition(b"\n")[2] if content is not None else None

    def has_body(self, job: Job) -> bool:
        filed, crc = self.database.execute("SELECT filed, crc FROM job WHERE seq = ?", (job.seq,)).fetchone()
        return is_whole(self.body(job, filed), job.size, crc)

    def is_to_be_told(self, job: Job) -> bool:
        """Whether an event for the receiver of the job's webhook still waits."""
        return self.database.execute("SELECT 1 FROM outbox WHERE seq = ?", (job.seq,)).fetchone() is not None

    def due_webhooks(
        self, now: float, most: int, numbers: Sequence[int] = (), hosts: Sequence[str] = ()
    ) -> list[DueWebhook]:
        """The events that are due, the oldest first, without those of these numbers and those for these hosts."""
        others, values = f"AND number NOT IN ({marks(numbers)}) ", list[Any](numbers)
        for start in (f"{scheme}://{host}" for host in hosts for scheme in ("http", "https")):
            others += "AND NOT (substr(url, 1, ?) = ? COLLATE NOCASE AND substr(url, ?, 1) IN ('', '/', '?', '#')) "
            values += [len(start), start, len(start) + 1]
        rows = self.database.execute(
            f"SELECT number, id, seq, event, url, attempts FROM outbox WHERE due <= ? {others}ORDER BY due LIMIT ?",  # noqa: S608
            (now, *values, most),
        )
        return [DueWebhook(*row) for row in rows.fetchall()]

    def webhooks_waiting(self) -> int:
        return int(self.database.execute("SELECT count(*) FROM outbox").fetchone()[0])


def parts(entries: Sequence[Entry]) -> list[Sequence[Entry]]:
    """The entries in pieces of 32, 16, 8, 4, 2, 1: so there are few different statements, and all stay prepared."""
    pieces, at = [], 0
    for size in (32, 16, 8, 4, 2, 1):
        while len(entries) - at >= size:
            pieces.append(entries[at : at + size])
            at += size
    return pieces


def marks(entries: Sequence[Any]) -> str:
    return ",".join("?" * len(entries))
