"""What the store of jobs has promised, compared with what is left of it after a crash."""

from __future__ import annotations

from panglot.jobs.job import CANCELLED, DONE, JobTrouble
from support import job_writer
from support.job_store import Opened


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
