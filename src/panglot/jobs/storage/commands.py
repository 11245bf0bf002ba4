"""The commands of the store. All run on the store's thread, inside a transaction."""

from __future__ import annotations

import sqlite3
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from panglot.jobs.job import (
    CANCELLED,
    DELAYED,
    DISK,
    END_EVENTS,
    EXPIRED,
    FAILED,
    FULL,
    INTERRUPTED,
    KEY_REUSED,
    QUEUED,
    RUNNING,
    Claimed,
    Job,
    JobLimits,
    JobOutcome,
    JobTrouble,
    NewJob,
    Swept,
    Webhook,
    fault_text,
)
from panglot.jobs.storage.folder import ANSWERS, BODIES, JobFolder
from panglot.jobs.storage.pace import EndingPace
from panglot.jobs.storage.queries import SELECT, JobQueries, marks, parts
from panglot.jobs.storage.recovering import recover
from panglot.jobs.storage.rescue import about, is_whole
from panglot.jobs.storage.sweeping import sweep

IN_ROW = 64 << 10
"""Bodies and answers up to so many bytes lie in the database; larger ones are files."""
NEVER = 9e99
ROW = "(?,?,?,?,?,?,?,0,0,0,?,NULL,NULL,?,?,?,?,?,?,?,?,?,?,?,?,NULL,NULL,0,NULL,0,NULL,NULL)"


class JobTables:
    """The tables of jobs, and exact counts of what is in them."""

    def __init__(
        self,
        database: sqlite3.Connection,
        folder: JobFolder | None,
        limits: JobLimits,
        now: Callable[[], float],
    ) -> None:
        self.database = database
        self.now = now
        self.folder = folder
        self.limits = limits
        self.queries = JobQueries(database, folder)
        self.jobs = self.bytes = 0
        self.next_seq = 1
        self.counts: Counter[tuple[str, int]] = Counter()
        """Jobs by model and state."""
        self.pace = EndingPace()
        self.made: list[Path] = []
        """Files that this transaction has made. They are removed if it fails."""
        self.gone: list[Path] = []
        """Files whose rows this transaction removes. They are removed after its commit."""
        self._unsynced: set[str] = set()
        self._filed: dict[str, int] = {}

    # Transactions

    def begin(self, new_jobs: Sequence[NewJob]) -> tuple[Any, ...]:
        """Begin a transaction, after the large bodies are written; returns what `restore` needs. Raises OSError."""
        self.made, self.gone, self._filed = [], [], {}
        self._unsynced = set()
        counted = self.jobs, self.bytes, self.next_seq, self.counts.copy()
        if self.folder is not None:
            self._write_bodies(self.folder, new_jobs)
        self.database.execute("BEGIN IMMEDIATE")
        return counted

    def restore(self, counted: tuple[Any, ...]) -> None:
        """Count as before a transaction that failed."""
        self.jobs, self.bytes, self.next_seq, self.counts = counted

    def sync_names(self) -> None:
        """Make the names of new files durable: before the commit, so that no row can lack its file."""
        if self.folder is not None:
            for kind in self._unsynced:
                self.folder.sync(kind)

    def _write_bodies(self, folder: JobFolder, jobs: Sequence[NewJob]) -> None:
        if folder.low and jobs:
            folder.restore_ballast()
            if not folder.low:
                self.database.execute("PRAGMA wal_autocheckpoint = 1000").fetchone()
        for job in jobs:
            if folder.low:
                return
            if len(job.body) > IN_ROW:
                line = about(job, self.now(), zlib.crc32(job.body))
                self._filed[job.id] = self._file(folder, BODIES, job.id, line, job.body)

    def _file(self, folder: JobFolder, kind: str, name: str, *pieces: bytes) -> int:
        number, path = folder.write(kind, name, *pieces)
        self.made.append(path)
        self._unsynced.add(kind)
        return number

    def move(self, job: Job, state: int) -> None:
        """Count a job that changes its state."""
        self.counts[job.model, job.state] -= 1
        self.counts[job.model, state] += 1

    def count(self) -> None:
        """Count the rows of the tables: once, at the start."""
        self.jobs, self.bytes, last = self.database.execute(
            "SELECT count(*), coalesce(sum(size + answer_size), 0), coalesce(max(seq), 0) FROM job"
        ).fetchone()
        self.next_seq = last + 1
        rows = self.database.execute("SELECT model, state, count(*) FROM job GROUP BY model, state")
        self.counts = Counter({(model, state): count for model, state, count in rows})

    def recover(self) -> int:
        """Decide about the jobs that ran when the server died. Returns their number. In a transaction of its own."""
        return recover(self)

    # Submitting

    def submit(self, jobs: Sequence[NewJob]) -> list[tuple[Job, bool] | JobTrouble]:
        """Store jobs; each with whether it is new. All jobs of a transaction share a few statements: after each
        statement the thread waits for the interpreter's lock, and beside a busy loop that takes a switch interval."""
        known = {
            row[1]: Job(*row)
            for part in parts(jobs)
            for row in self.database.execute(SELECT + f"WHERE id IN ({marks(part)})", [job.id for job in part])
        }
        keyed = [job for job in jobs if job.key is not None]
        keys = {
            (row[0], row[1], row[2]): (row[3], row[4])
            for part in parts(keyed)
            for row in self.database.execute(
                f"SELECT owner, model, key, id, digest FROM job WHERE key IN ({marks(part)})",  # noqa: S608
                [job.key for job in part],
            )
        }
        results: list[tuple[Job, bool] | JobTrouble] = []
        new: list[tuple[Job, NewJob]] = []
        now = self.now()
        for job in jobs:
            same = keys.get((job.owner, job.model, job.key)) if job.key is not None else None
            if same is not None:
                self._discard(job)
                results.append(self._repeated(job, *same, {stored.id: stored for stored, _ in new}))
            elif job.id in known:
                # A front sends it again that got no answer. Before the limits: a stored job is never refused.
                self._discard(job)
                results.append((known[job.id], False))
            elif (trouble := self._refusal(job)) is not None:
                self._discard(job)
                results.append(trouble)
            else:
                stored = self._counted(job, now)
                new.append((stored, job))
                known[job.id] = stored
                if job.key is not None:
                    keys[job.owner, job.model, job.key] = (job.id, job.digest)
                results.append((stored, True))
        self._insert(new)
        return results

    def _repeated(self, job: NewJob, name: str, digest: bytes, new: dict[str, Job]) -> tuple[Job, bool] | JobTrouble:
        if digest != job.digest:
            return JobTrouble(KEY_REUSED, "the Idempotency-Key was used for another request")
        stored = new.get(name) or self.queries.get(name)
        assert stored is not None
        return stored, False

    def _refusal(self, job: NewJob) -> JobTrouble | None:
        if self.folder is not None and self.folder.low:
            return JobTrouble(DISK, "the disk that jobs are stored on is full; try again later")
        if self.jobs >= self.limits.jobs or self.bytes + len(job.body) > self.limits.bytes:
            return JobTrouble(FULL, "too many jobs are stored; try again later", self.pace.seconds_to_next())
        if self.counts[job.model, QUEUED] + self.counts[job.model, DELAYED] >= self.limits.queued:
            message = "too many jobs of this model wait; try again later"
            return JobTrouble(FULL, message, self.pace.seconds_to_next(job.model))
        return None

    def _counted(self, job: NewJob, now: float) -> Job:
        seq, self.next_seq = self.next_seq, self.next_seq + 1
        self.jobs += 1
        self.bytes += len(job.body)
        self.counts[job.model, QUEUED] += 1
        expires = now + job.lifetime
        webhook = job.webhook.to_text() if job.webhook is not None else None
        return Job(
            seq, job.id, job.model, job.route, job.owner, job.key, QUEUED, 0, 0, now, None, None, expires, expires,
            job.retain, webhook, job.own, len(job.body), None, None, 0, None, 0, None, None,
        )  # fmt: skip

    def _insert(self, new: Sequence[tuple[Job, NewJob]]) -> None:
        sums = {job.id: zlib.crc32(job.body) for _, job in new}
        for part in parts(new):
            values: list[Any] = []
            for stored, job in part:
                values += (stored.seq, job.id, job.model, job.route, job.owner, job.key, job.digest)
                values += (stored.accepted, stored.due, stored.expires, job.retain, stored.webhook, job.own, job.head)
                values += (job.lane, int(job.rerun), job.run_timeout, len(job.body), sums[job.id])
                values.append(self._filed.get(job.id, 0))
            self.database.execute("INSERT INTO job VALUES " + ",".join([ROW] * len(part)), values)  # noqa: S608
        small = [(stored, job) for stored, job in new if job.id not in self._filed]
        for part in parts(small):
            values = []
            for stored, job in part:
                values += (stored.seq * 2, about(job, stored.accepted, sums[job.id]) + job.body)
            self.database.execute("INSERT INTO payload VALUES " + ",".join(["(?,?)"] * len(part)), values)  # noqa: S608

    def _discard(self, job: NewJob) -> None:
        """Remove the file that this transaction made; never the file of the job that is stored already."""
        if self.folder is not None and job.id in self._filed:
            self.gone.append(self.folder.file(BODIES, job.id, self._filed.pop(job.id)))

    # Running

    def claim(self, model: str, most: int) -> list[Claimed]:
        """Store the next jobs of a model as running, before they run: a job that kills the server is known afterwards.

        Of the jobs that ran when the server died, one runs at a time: so the guilty job fails alone.
        """
        suspect = self.database.execute("SELECT 1 FROM job WHERE state = 1 AND crashes > 0 LIMIT 1").fetchone()
        rows = self.database.execute(
            SELECT + "WHERE state = 0 AND model = ? AND (crashes = 0 OR ?) ORDER BY seq LIMIT ?",
            (model, suspect is None, most + 8),
        ).fetchall()
        claimed: list[Claimed] = []
        now = self.now()
        for row in rows:
            if len(claimed) == most:
                break
            job = Job(*row)
            if job.crashes and suspect is not None:
                continue
            suspect = (1,) if job.crashes else suspect
            head, lane, limit, crc, filed = self.database.execute(
                "SELECT head, lane, run_timeout, crc, filed FROM job WHERE seq = ?", (job.seq,)
            ).fetchone()
            body = self.queries.body(job, filed)
            if body is None or not is_whole(body, job.size, crc):
                message = "the stored body of the job is damaged"
                self.end(job, FAILED, now, fault_text("body_damaged", message))
                continue
            claimed.append(Claimed(self._start(job, now), head, lane, limit, body))
        return claimed

    def adopt(self, new: NewJob, accepted: float, started: float) -> Job | JobTrouble | None:
        """Store a job that runs already, as accepted and running since these times; None where it is stored already.

        It is never queued, not even between two commands of a transaction: so no `claim` starts it once more.
        """
        (result,) = self.submit((new,))
        if isinstance(result, JobTrouble):
            return result
        job, is_new = result
        if not is_new:
            return None
        expires = job.expires - job.accepted + accepted
        self.database.execute("UPDATE job SET accepted = ?, expires = ? WHERE seq = ?", (accepted, expires, job.seq))
        return self._start(job._replace(accepted=accepted, expires=expires), started)

    def _start(self, job: Job, now: float) -> Job:
        self.database.execute(
            "UPDATE job SET state = 1, attempts = ?, started = ?, due = ? WHERE seq = ?",
            (job.attempts + 1, now, NEVER, job.seq),
        )
        self.move(job, RUNNING)
        running = job._replace(state=RUNNING, attempts=job.attempts + 1, started=now, due=NEVER)
        self._notify(running, "started", now)
        return running

    def finish(self, seq: int, attempt: int, outcome: JobOutcome) -> Job | None:
        """Store an answer; None when the job has ended otherwise meanwhile, or runs again."""
        job = self._running(seq, attempt)
        if job is None:
            return None
        body, filed, now = outcome.body, 0, self.now()
        if len(body) > IN_ROW and self.folder is not None:
            filed = self._file(self.folder, ANSWERS, job.id, body)
        elif body:
            self.database.execute("INSERT OR REPLACE INTO payload VALUES (?, ?)", (seq * 2 + 1, body))
        self.database.execute(
            "UPDATE job SET status = ?, answer_head = ?, answer_size = ?, answer_crc = ?, answer_filed = ?, parts = ? "
            "WHERE seq = ?",
            (outcome.status, outcome.head, len(body), zlib.crc32(body), filed, outcome.parts or None, seq),
        )
        self.bytes += len(body)
        return self.end(job, outcome.state, now, outcome.fault)

    def give_back(self, seq: int, attempt: int) -> Job | None:
        """Queue a running job again as if it had never run: it was not begun, or the server is stopping."""
        job = self._running(seq, attempt)
        if job is None:
            return None
        self.database.execute("UPDATE job SET state = 0, due = expires, attempts = attempts - 1 WHERE seq = ?", (seq,))
        self.move(job, QUEUED)
        return job._replace(state=QUEUED, attempts=attempt - 1, due=job.expires)

    def cancel_run(self, seq: int, attempt: int) -> Job | None:
        """End a running job whose run was cancelled."""
        job = self._running(seq, attempt)
        return self.end(job, CANCELLED, self.now(), None) if job is not None else None

    def delay(self, seq: int, attempt: int, due: float) -> Job | None:
        """Have a running job wait for its next attempt: its worker died."""
        job = self._running(seq, attempt)
        if job is None:
            return None
        self.database.execute("UPDATE job SET state = ?, due = ? WHERE seq = ?", (DELAYED, due, seq))
        self.move(job, DELAYED)
        self._notify(job, "retrying", self.now())
        return job._replace(state=DELAYED, due=due)

    def _running(self, seq: int, attempt: int) -> Job | None:
        row = self.database.execute(SELECT + "WHERE seq = ? AND state = 1 AND attempts = ?", (seq, attempt)).fetchone()
        return Job(*row) if row is not None else None

    def end(self, job: Job, state: int, now: float, fault: str | None) -> Job:
        """End a job, and store the event for its webhook. Returns the job as it is then."""
        self.database.execute(
            "UPDATE job SET state = ?, ended = ?, due = ?, fault = ? WHERE seq = ?",
            (state, now, now + job.retain, fault, job.seq),
        )
        self.move(job, state)
        self.pace.note(job.model)
        ended = self.queries.get(job.id)
        assert ended is not None
        self._notify(ended, END_EVENTS[state], now)
        return ended

    def _notify(self, job: Job, event: str, now: float) -> None:
        """Store an event for the job's webhook, in the same transaction as the change that it tells of."""
        if not job.webhook:
            return
        webhook = Webhook.from_text(job.webhook)
        if event in webhook.events:
            # A further attempt brings the same event again. It needs an id of its own: receivers drop known ids.
            more = f"_{job.attempts}" if event in ("started", "retrying") and job.attempts > 1 else ""
            self.database.execute(
                "INSERT OR IGNORE INTO outbox (id, seq, event, url, attempts, due) VALUES (?,?,?,?,0,?)",
                (f"evt_{job.id}_{event}{more}", job.seq, event, webhook.url, now),
            )

    # What clients and administrators do

    def cancel(self, name: str, state: int = CANCELLED) -> tuple[Job, bool] | None:
        """End a job. Returns it, and whether this ended it. Final at once: a later answer is dropped."""
        job = self.queries.get(name)
        if job is None or job.is_ended:
            return None if job is None else (job, False)
        return self.end(job, state, self.now(), None), True

    def purge(self, model: str, owner: str | None = None) -> list[Job]:
        """Cancel the jobs of a model that wait: all, or those of an owner."""
        whose, values = ("", (model,)) if owner is None else (" AND owner = ?", (model, owner))
        rows = self.database.execute(SELECT + "WHERE model = ? AND state IN (0, 6)" + whose, values).fetchall()
        return [self.end(Job(*row), CANCELLED, self.now(), None) for row in rows]

    def erase(self, name: str) -> Job | None:
        """Remove the body and the answer of a job that has ended. Its row is removed when its time is over."""
        job = self.queries.get(name)
        if job is None or not job.is_ended:
            return job
        self._remove_payloads(job)
        self.database.execute(
            "UPDATE job SET size = 0, filed = 0, crc = 0, answer_size = 0, answer_filed = 0, answer_crc = NULL, "
            "answer_head = NULL, parts = NULL, status = NULL WHERE seq = ?",
            (job.seq,),
        )
        self.bytes -= job.size + job.answer_size
        return self.queries.get(name)

    def shorten(self, name: str, seconds: float) -> None:
        """Remove a job that has ended after so many seconds at most. One whose webhook is due stays, see `sweep`."""
        job = self.queries.get(name)
        if job is not None and job.is_ended:
            if seconds <= 0 and not self.queries.is_to_be_told(job):
                self.remove(job)
            else:
                self.database.execute("UPDATE job SET due = min(due, ?) WHERE seq = ?", (self.now() + seconds, job.seq))

    def requeue(self, name: str, lifetime: float) -> Job | None:
        """Queue a job that failed once more, with all its attempts; None where it has not failed or has no body."""
        job = self.queries.get(name)
        if job is None or job.state not in (FAILED, INTERRUPTED, EXPIRED) or not self.queries.has_body(job):
            return None
        self._remove_answer(job)
        expires = self.now() + lifetime
        self.database.execute(
            "UPDATE job SET state = 0, attempts = 0, crashes = 0, started = NULL, ended = NULL, due = ?, expires = ?, "
            "status = NULL, answer_head = NULL, answer_size = 0, answer_crc = NULL, answer_filed = 0, parts = NULL, "
            "fault = NULL WHERE seq = ?",
            (expires, expires, job.seq),
        )
        # The next run has events with the same ids. Old rows would keep them from being stored.
        self.database.execute("DELETE FROM outbox WHERE seq = ?", (job.seq,))
        self.bytes -= job.answer_size
        self.move(job, QUEUED)
        return self.queries.get(name)

    def sweep(self, now: float, most: int = 500) -> Swept:
        """End queued jobs past their time, queue those whose delay is over, remove ended ones past theirs."""
        return sweep(self, now, most)

    def remove(self, job: Job) -> None:
        self._remove_payloads(job)
        self.database.execute("DELETE FROM job WHERE seq = ?", (job.seq,))
        self.jobs, self.bytes = self.jobs - 1, self.bytes - job.size - job.answer_size
        self.counts[job.model, job.state] -= 1

    def _remove_payloads(self, job: Job) -> None:
        self.database.execute("DELETE FROM payload WHERE position = ?", (job.seq * 2,))
        filed = self.database.execute("SELECT filed FROM job WHERE seq = ?", (job.seq,)).fetchone()[0]
        if filed and self.folder is not None:
            self.gone.append(self.folder.file(BODIES, job.id, filed))
        self._remove_answer(job)

    def _remove_answer(self, job: Job) -> None:
        self.database.execute("DELETE FROM payload WHERE position = ?", (job.seq * 2 + 1,))
        if job.answer_filed and self.folder is not None:
            self.gone.append(self.folder.file(ANSWERS, job.id, job.answer_filed))

    # Webhooks

    def delivered(self, number: int) -> None:
        """Forget an event: its receiver has it, or never will."""
        self.database.execute("DELETE FROM outbox WHERE number = ?", (number,))

    def postpone(self, number: int, due: float, fault: str) -> None:
        """Tell an event again later."""
        self.database.execute(
            "UPDATE outbox SET attempts = attempts + 1, due = ?, fault = ? WHERE number = ?", (due, fault, number)
        )
