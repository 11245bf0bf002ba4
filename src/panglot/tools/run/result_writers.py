"""Results of many inputs as a table, as lines of JSON, or as CSV."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, TextIO

from panglot.terminal import printing, tables
from panglot.terminal.tables import Column
from panglot.terminal.text import visible
from panglot.tools.run.running import RunResult
from panglot_worker.line.wire import STAGES

if TYPE_CHECKING:
    from rich.console import Console

LONGEST = 96
"""Characters of an answer that a table shows."""
COLUMNS = (*STAGES, "total")


class Writer(Protocol):
    """Writes results as they come."""

    def __init__(self, target: TextIO) -> None: ...

    def add(self, result: RunResult) -> None: ...

    def close(self) -> None: ...


def writer(name: str, target: TextIO) -> Writer:
    kinds: dict[str, type[Writer]] = {"table": TableWriter, "jsonl": LineWriter, "csv": CsvWriter}
    return kinds[name](target)


class LineWriter:
    """One JSON object per input, as soon as its result is there."""

    def __init__(self, target: TextIO) -> None:
        self.target = target

    def add(self, result: RunResult) -> None:
        """Write one result."""
        row: dict[str, Any] = {"input": result.name, "status": result.status}
        if result.failed:
            row["error"] = result.error or f"status {result.status}"
        if not result.failed or result.value is not None:
            row["answer"] = result.value
        row["times_ms"] = result.times
        if result.runs > 1:
            row["runs"], row["stable"] = result.runs, result.stable
        self.target.write(json.dumps(row, ensure_ascii=False) + "\n")
        self.target.flush()

    def close(self) -> None:
        self.target.flush()


class CsvWriter:
    """One line of CSV per input, as soon as its result is there."""

    def __init__(self, target: TextIO) -> None:
        self.target = target
        self.rows = csv.writer(target, lineterminator="\n")
        self.rows.writerow(["input", "status", *(f"{name}_ms" for name in COLUMNS), "answer", "error"])

    def add(self, result: RunResult) -> None:
        times = [result.times.get(name, "") for name in COLUMNS]
        answer = "" if result.failed else json.dumps(result.value, ensure_ascii=False)
        error = (result.error or f"status {result.status}") if result.failed else ""
        self.rows.writerow([result.name, result.status or "", *times, answer, error])
        self.target.flush()

    def close(self) -> None:
        self.target.flush()


class TableWriter:
    """A table of all results, written at the end."""

    def __init__(self, target: TextIO) -> None:
        self.target = target
        self.results: list[RunResult] = []

    def add(self, result: RunResult) -> None:
        self.results.append(result)

    def close(self) -> None:
        show(printing.console(self.target, highlight=True), self.results)


COLUMNS_OF_NAMES = (Column("input", least=16, ending=True), Column("answer", least=36))
SPARE = {"total": 1, "inference": 2, "preprocess": 3, "postprocess": 4, "decode": 5, "encode": 6}
"""The columns of times that are left out first on a narrow terminal."""


def show(console: Console, results: Sequence[RunResult]) -> None:
    """The table of results, with as many times as fit."""
    from rich.text import Text

    used = [name for name in COLUMNS if any(result.times.get(name) for result in results)]
    times = [Column("total ms" if name == "total" else name, SPARE[name], right=True) for name in used]
    rows: list[list[Text | str]] = []
    for result in results:
        shown = Text(_clipped(result), "red" if result.failed else "")
        if not result.stable:
            shown.append(" (differs from run to run)", "yellow")
        rows.append([Text(visible(result.name)), shown, *(_number(result.times.get(name)) for name in used)])
    tables.show(console, (*COLUMNS_OF_NAMES, *times), rows, "--json has them")


def _clipped(result: RunResult) -> str:
    if result.failed:
        text = result.error or f"status {result.status}: {json.dumps(result.value, ensure_ascii=False)}"
    else:
        text = json.dumps(result.value, ensure_ascii=False)
    text = visible(text)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def summary(results: Sequence[RunResult], total: int, seconds: float) -> str:
    """One line with the number of inputs and failures, and with the times of the answers."""
    good = [result for result in results if not result.failed]
    words = [f"{len(good)} of {total} answered in {seconds:.1f} s"]
    failed = len(results) - len(good)
    if failed:
        words.append(f"{failed} failed")
    if good:
        totals = sorted(result.times["total"] for result in good)
        words.append(f"median {totals[len(totals) // 2]:.2f} ms, slowest {totals[-1]:.2f} ms")
    if any(not result.stable for result in results):
        words.append("some answers differ from run to run")
    return ", ".join(words)
