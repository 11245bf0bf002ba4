"""The budgets, and whether this run met them."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass

from load import LENGTHS
from measure import Idle, Sample

Rounds = Mapping[int, Sample]


@dataclass(frozen=True)
class RatioBudget:
    """One figure of one contestant, divided by another's."""

    text: str
    subject: str
    reference: str
    figure: str
    relation: str
    limit: float
    aim: float | None = None


RATIOS = (
    RatioBudget("batch echo, CPU", "panglot-batch", "floor", "cpu_us", "<=", 1.2, aim=1.0),
    RatioBudget("one-by-one echo, CPU", "panglot-single", "floor", "cpu_us", "<=", 1.6, aim=1.3),
    RatioBudget("batch echo, CPU", "panglot-batch", "mosec-batch-orjson", "cpu_us", "<", 1.0),
    RatioBudget("batch echo, CPU", "panglot-batch", "mosec-batch", "cpu_us", "<", 1.0),
    RatioBudget("one-by-one echo, CPU", "panglot-single", "mosec-single", "cpu_us", "<", 1.0),
    RatioBudget("batch echo, p99", "panglot-batch", "mosec-batch", "p99_ms", "<=", 1.25),
    RatioBudget("one-by-one echo, p99", "panglot-single", "mosec-single", "p99_ms", "<=", 1.25),
    RatioBudget("keys, CPU", "panglot-keys", "panglot-token", "cpu_us", "<=", 1.03),
    RatioBudget("keys with limits, CPU", "panglot-limited-keys", "panglot-token", "cpu_us", "<=", 1.03),
    RatioBudget("150 kB raw echo, CPU", "panglot-raw", "floor-raw", "cpu_us", "<=", 2.5),
    *(
        RatioBudget(f"{title} body, CPU", f"panglot-batch {title}", f"floor {title}", "cpu_us", "<=", 1.2, aim=1.0)
        for title in LENGTHS
    ),
    *(
        RatioBudget(f"echo of {name}, CPU", f"panglot-{name}", "panglot-single", "cpu_us", "<=", 1.3)
        for name in ("azureml", "paieas", "truss", "hfendpoint")
    ),
)
FRONT_MB = 60.0
WORKER_MB = 30.0
HELP_SECONDS = 0.3


@dataclass(frozen=True)
class Verdict:
    text: str
    value: float | None
    relation: str
    limit: float
    unit: str
    outcome: str
    """met, MISSED, INVALID (requests failed) or not measured"""
    aim: float | None = None


def median_ratio(subject: Rounds, reference: Rounds, figure: str) -> float | None:
    """The median of the rounds' own ratios; None when no round has both."""
    shared = subject.keys() & reference.keys()
    pairs = [(getattr(subject[index], figure), getattr(reference[index], figure)) for index in shared]
    ratios = [value / base for value, base in pairs if base > 0]
    return statistics.median(ratios) if ratios else None


def judge(text: str, value: float | None, relation: str, limit: float, unit: str) -> Verdict:
    if value is None:
        return Verdict(text, None, relation, limit, unit, "not measured")
    met = value < limit if relation == "<" else value <= limit
    return Verdict(text, value, relation, limit, unit, "met" if met else "MISSED")


def judge_ratio(budget: RatioBudget, results: Mapping[str, Rounds]) -> Verdict:
    subject, reference = results.get(budget.subject, {}), results.get(budget.reference, {})
    text = f"{budget.text}: {budget.subject} to {budget.reference}"
    value = median_ratio(subject, reference, budget.figure)
    verdict = judge(text, value, budget.relation, budget.limit, "x")
    faulty = any(sample.faults for rounds in (subject, reference) for sample in rounds.values())
    outcome = "INVALID" if faulty and value is not None else verdict.outcome
    return Verdict(text, value, budget.relation, budget.limit, "x", outcome, budget.aim)


def verdicts(results: Mapping[str, Rounds], idle: Idle | None, help_seconds: float | None) -> list[Verdict]:
    """Every budget, in the order it is printed."""
    return [
        *(judge_ratio(budget, results) for budget in RATIOS),
        judge("idle memory of the front", idle.front_mb if idle else None, "<", FRONT_MB, "MB"),
        judge("idle memory of a plain worker", idle.worker_mb if idle else None, "<", WORKER_MB, "MB"),
        judge("panglot --help, CPU", help_seconds, "<", HELP_SECONDS, "s"),
    ]
