"""The figures of /metrics about jobs."""

from __future__ import annotations

from collections import Counter

from panglot.jobs.job import STATES
from panglot.jobs.storage.store import JobStore

Gauge = tuple[str, str, dict[str, str], float]
"""Name, help, labels and value."""


def of_counts(counts: Counter[tuple[str, int]]) -> list[Gauge]:
    """How many jobs there are by model and state."""
    shown: Counter[tuple[str, str]] = Counter()
    for (model, state), count in counts.items():
        shown[model, STATES[state]] += count
    return [
        ("panglot_jobs", "jobs by model and state", {"job_model": model, "state": state}, count)
        for (model, state), count in sorted(shown.items())
    ]


def of_jobs(store: JobStore, counts: Counter[tuple[str, int]], webhooks: Counter[str]) -> list[Gauge]:
    """All figures. `counts` are jobs by model and state, `webhooks` attempts to deliver by outcome."""
    gauges = of_counts(counts)
    gauges.append(("panglot_jobs_bytes", "bytes of bodies and answers of jobs", {}, store.bytes))
    gauges.append(("panglot_jobs_commits", "transactions of the store of jobs", {}, store.commits))
    seconds = "seconds that all transactions of the store of jobs took"
    gauges.append(("panglot_jobs_commit_seconds", seconds, {}, store.commit_seconds))
    gauges.append(("panglot_jobs_refused", "1 while no job is accepted: the disk", {}, float(bool(store.trouble))))
    for outcome, count in sorted(webhooks.items()):
        gauges.append(("panglot_webhooks", "tries to tell webhooks, by outcome", {"outcome": outcome}, count))
    return gauges
