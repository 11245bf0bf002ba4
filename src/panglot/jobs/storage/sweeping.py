"""The sweep of jobs that are due. It runs on the store's thread, inside a transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from panglot.jobs.job import DELAYED, EXPIRED, QUEUED, Job, Swept
from panglot.jobs.storage.database import shrink
from panglot.jobs.storage.queries import SELECT

if TYPE_CHECKING:
    from panglot.jobs.storage.commands import JobTables

TOLD_LATER = 600.0
"""Seconds that a job stays beyond its time while an event for its webhook waits."""


def sweep(tables: JobTables, now: float, most: int) -> Swept:
    """End queued jobs past their time, queue those whose delay is over, remove ended ones past theirs."""
    swept, database = Swept([], set()), tables.database
    rows = database.execute(SELECT + "WHERE due <= ? ORDER BY due LIMIT ?", (now, most)).fetchall()
    for job in [Job(*row) for row in rows]:
        if job.state == DELAYED and now < job.expires:
            database.execute("UPDATE job SET state = 0, due = expires WHERE seq = ?", (job.seq,))
            tables.move(job, QUEUED)
            swept.queued.add(job.model)
        elif job.state in (QUEUED, DELAYED):
            swept.expired.append(tables.end(job, EXPIRED, now, None))
        elif tables.queries.is_to_be_told(job):
            # The event carries the answer, or its receiver asks for the answer then.
            database.execute("UPDATE job SET due = ? WHERE seq = ?", (now + TOLD_LATER, job.seq))
        else:
            tables.remove(job)
    shrink(database)
    return swept
