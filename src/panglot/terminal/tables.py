"""Tables that fit a terminal: columns that matter least are left out, and no word is broken in two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

GAP = 2
NAMES_SHARE = 0.4
"""The largest share of the width of all text columns that the first, of names, may take."""


@dataclass(frozen=True)
class Column:
    """A column. On a narrow terminal, columns with the highest `spare` are left out first; 0 is always shown.

    `least` is the smallest width of a text that may be narrower than its longest line: it is broken at spaces, or,
    with `ending`, only its last letters are shown, as suits the names of files.
    """

    heading: str
    spare: int = 0
    right: bool = False
    least: int = 0
    ending: bool = False


Row = Sequence["Text | str"]


def show(console: Console, columns: Sequence[Column], rows: Sequence[Row], hint: str = "", header: bool = True) -> None:
    """Print the rows; below them, dimly, the columns that do not fit. `hint` says where to find these."""
    from rich.table import Table
    from rich.text import Text

    cells = [[cell if isinstance(cell, Text) else Text.from_markup(cell) for cell in row] for row in rows]
    natural = [max([len(column.heading), *(line_width(row[at]) for row in cells)]) for at, column in enumerate(columns)]
    shown = fitting(columns, natural, console.width)
    widths = shared(columns, natural, shown, console.width)
    table = Table(box=None, header_style="dim", padding=(0, GAP, 0, 0), show_header=header, pad_edge=False)
    for at in shown:
        column = columns[at]
        justify = "right" if column.right else "left"
        table.add_column(column.heading, justify=justify, no_wrap=not column.least, overflow="fold", width=widths[at])  # type: ignore[arg-type]
    for row in cells:
        table.add_row(*(_ended(row[at], widths[at]) if columns[at].ending else row[at] for at in shown))
    console.print(table)
    left_out = [column.heading for at, column in enumerate(columns) if at not in shown]
    if left_out:
        console.print(f"[dim]no room for: {', '.join(left_out)}{f' ({hint})' if hint else ''}[/dim]")


def line_width(cell: Text) -> int:
    return max((line.cell_len for line in cell.split("\n")), default=0)


def fitting(columns: Sequence[Column], natural: Sequence[int], width: int) -> list[int]:
    """The indices of the columns that fit into a width."""
    shown = list(range(len(columns)))

    def needed() -> int:
        least = (min(natural[at], columns[at].least or natural[at]) for at in shown)
        return sum(least) + GAP * (len(shown) - 1)

    while needed() > width and any(columns[at].spare for at in shown):
        # Of equals, the last goes first.
        shown.remove(max(shown, key=lambda at: (columns[at].spare, at)))
    return shown


def shared(columns: Sequence[Column], natural: Sequence[int], shown: Sequence[int], total: int) -> dict[int, int]:
    """The width of each column: columns of figures get what they need, columns of text share the rest."""
    widths = {at: natural[at] for at in shown}
    texts = [at for at in shown if columns[at].least]
    left = total - GAP * (len(shown) - 1) - sum(width for at, width in widths.items() if at not in texts)
    for number, at in enumerate(texts):
        others = sum(natural[other] for other in texts[number + 1 :])
        most = max(columns[at].least, int(left * NAMES_SHARE), left - others) if others else left
        widths[at] = max(1, min(natural[at], most))
        left -= widths[at]
    return widths


def _ended(cell: Text, width: int) -> Text:
    from rich.text import Text

    return cell if cell.cell_len <= width else Text("…" + cell.plain[-(width - 1) :], cell.style)


class RowByRow:
    """A table that prints each row at once, so the widths of its columns are fixed before the first row."""

    def __init__(self, console: Console, columns: Sequence[Column], widths: Sequence[int], hint: str = "") -> None:
        self.console = console
        self.columns = columns
        self.widths = widths
        self.hint = hint
        self.shown = fitting(columns, widths, console.width)

    def head(self) -> None:
        self._print([f"[dim]{column.heading}[/dim]" for column in self.columns])

    def add(self, row: Row) -> None:
        self._print(row)

    def close(self) -> None:
        left_out = [column.heading for at, column in enumerate(self.columns) if at not in self.shown]
        if left_out:
            self.console.print(f"[dim]no room for: {', '.join(left_out)}{f' ({self.hint})' if self.hint else ''}[/dim]")

    def _print(self, row: Row) -> None:
        from rich.text import Text

        line = Text()
        for at in self.shown:
            cell = row[at]
            shown = (cell if isinstance(cell, Text) else Text.from_markup(cell)).copy()
            shown.align("right" if self.columns[at].right else "left", max(self.widths[at], shown.cell_len))
            line.append(shown)
            line.append(" " * GAP)
        line.rstrip()
        self.console.print(line, soft_wrap=True)
