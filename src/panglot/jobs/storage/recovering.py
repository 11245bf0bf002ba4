"""What becomes of the jobs that ran when the server died. It is decided on the store's thread, inside a transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from panglot.jobs.job import FAILED, INTERRUPTED, QUEUED, Job, fault_text
from panglot.jobs.storage.queries import SELECT

if TYPE_CHECKING:
    from panglot.jobs.storage.commands import JobTables

MOST_CRASHES = 3
"""Deaths of the server while a job ran. After so many the job is failed: it may well be the reason."""


def recover(tables: JobTables) -> int:
    """Queue them again, or end them. Returns their number."""
    now, database = tables.now(), tables.database
    running = [Job(*row) for row in database.execute(SELECT + "WHERE state = 1").fetchall()]
    for job in running:
        rerun = database.execute("SELECT rerun FROM job WHERE seq = ?", (job.seq,)).fetchone()[0]
        crashes = job.crashes + 1
        database.execute("UPDATE job SET crashes = ? WHERE seq = ?", (crashes, job.seq))
        if not rerun:
            message = "the server ended while the job ran, and the model's jobs may not run twice"
            tables.end(job, INTERRUPTED, now, fault_text("interrupted", message))
        elif crashes >= MOST_CRASHES:
            message = f"the server ended {crashes} times while the job ran"
            tables.end(job, FAILED, now, fault_text("server_died", message))
        else:
            database.execute("UPDATE job SET state = 0, due = expires WHERE seq = ?", (job.seq,))
            tables.move(job, QUEUED)
    return len(running)
