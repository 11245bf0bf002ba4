"""What `panglot check` prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from panglot.terminal.text import counted, visible
from panglot.tools.check.compare import Verdict
from panglot.tools.check.stagewise import NAMES, UNSEEN, Compared, Stage

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

SHOWN = 4
"""Differences of one stage that are listed."""


def show_keys(console: Console, verdicts: Sequence[Verdict]) -> None:
    """Every key of two files, and a last line."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for _ in range(2):
        table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for verdict in verdicts:
        agree = f"agree, at most {verdict.gap:.3g} apart" if verdict.gap else "equal"
        agree = agree if verdict.compared else "not compared: it can only be named"
        outcome = Text(visible(verdict.differs), "red") if verdict.differs else Text(agree, "green")
        table.add_row(Text(visible(verdict.key or "the array")), Text(verdict.what), outcome)
    console.print(table)
    different = sum(1 for verdict in verdicts if verdict.differs)
    if different:
        console.print(f"[bold red]{different} of {len(verdicts)} differ[/bold red]")
    else:
        console.print(f"[green]all {len(verdicts)} agree[/green]")


def show_input(console: Console, compared: Compared) -> None:
    """Print the result of one input: its problem, or a line for every stage that could be seen."""
    from rich.text import Text

    console.print(Text(visible(compared.name), "bold"))
    if compared.problem:
        console.print(Text(f"  {visible(compared.problem)}", "red"))
        return
    shown = [stage for stage in compared.stages if stage.note != UNSEEN]
    width = max((len(_title(stage.name)) for stage in shown), default=0) + 1
    for stage in shown:
        _show_stage(console, stage, stage.name == compared.first, width)


def _title(stage: str) -> str:
    """The name of a stage for readers. Pools of pipelines and nodes of graphs keep their own names."""
    return visible(NAMES.get(stage, stage))


def _show_stage(console: Console, stage: Stage, is_first: bool, width: int) -> None:
    from rich.text import Text

    line = Text(f"  {_title(stage.name):{width}}")
    if not stage.verdicts:
        console.print(line.append(stage.note or "nothing to compare", "dim"))
        return
    if not stage.differs:
        gap = max(verdict.gap for verdict in stage.verdicts)
        hidden = [verdict.what for verdict in stage.verdicts if not verdict.compared]
        if len(hidden) < len(stage.verdicts):
            line.append(f"agrees, at most {gap:.3g} apart" if gap else "equal", "green")
        if hidden:
            line.append(f" (not compared, since it can only be named: {hidden[0]})", "dim")
        console.print(line)
        return
    different = [verdict for verdict in stage.verdicts if verdict.differs]
    worst = stage.worst()
    style, indent = "bold red" if is_first else "red", " " * (width + len("  differs: "))
    _print(console, line.append("differs: ", style), _words(worst))
    for verdict in [entry for entry in different if entry is not worst][: SHOWN - 1]:
        _print(console, Text(indent), _words(verdict))
    if len(different) > SHOWN:
        console.print(Text(f"{indent}and {len(different) - SHOWN} more", "dim"))


def _print(console: Console, head: Text, words: str) -> None:
    """Print one line. On a terminal, words that do not fit stand below the first ones; in a file the line is whole."""
    from rich.table import Table
    from rich.text import Text

    if not console.is_terminal:
        console.print(head.append(words), soft_wrap=True)
        return
    grid = Table.grid()
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(head, Text(words))
    console.print(grid)


def _words(verdict: Verdict) -> str:
    return visible(f"{verdict.key}: {verdict.differs}" if verdict.key else verdict.differs)


def show_summary(console: Console, outcomes: Sequence[Compared]) -> None:
    """The last line names the stage to look at."""
    from rich.text import Text

    first = Counter(outcome.first for outcome in outcomes if outcome.first)
    failed = sum(1 for outcome in outcomes if outcome.problem)
    if any(stage.note == UNSEEN for outcome in outcomes for stage in outcome.stages):
        console.print(Text(UNSEEN, "dim"))
    for stage, count in first.items():
        line = Text().append(f"the first stage that differs: {_title(stage)}", "bold red")
        console.print(line.append(f" ({count} of {counted(len(outcomes), 'input')})"))
    if failed:
        console.print(f"[bold red]{failed} of {counted(len(outcomes), 'input')} could not be compared[/bold red]")
    if not first and not failed:
        console.print(f"[green]both sides agree on {counted(len(outcomes), 'input')}[/green]")
