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
"""The most of the room for columns of text that their first, of names, may take."""


@dataclass(frozen=True)
class Column:
    """A column. Those with the highest `spare` go first when there is no room; 0 stays whatever happens.

    `least` is given for text that can do with less room than it would fill: it is broken at spaces then, or, with
    `ending`, shows its last letters only, as suits the names of files.
    """

    heading: str
    spare: int = 0
    right: bool = False
    least: int = 0
    ending: bool = False


Row = Sequence["Text | str"]


def show(console: Console, columns: Sequence[Column], rows: Sequence[Row], hint: str = "", header: bool = True) -> None:
    """Print the rows; below them, dimly, which columns had no room. `hint` says where to find those."""
    from rich.table import Table
    from rich.text import Text

    cells = [[cell if isinstance(cell, Text) else Text.from_markup(cell) for cell in row] for row in rows]
    natural = [max([len(column.heading), *(line_width(row[at]) for row in cells)]) for at, column in enumerate(columns)]
    kept = fitting(columns, natural, console.width)
    widths = shared(columns, natural, kept, console.width)
    table = Table(box=None, header_style="dim", padding=(0, GAP, 0, 0), show_header=header, pad_edge=False)
    for at in kept:
        column = columns[at]
        justify = "right" if column.right else "left"
        table.add_column(column.heading, justify=justify, no_wrap=not column.least, overflow="fold", width=widths[at])  # type: ignore[arg-type]
    for row in cells:
        table.add_row(*(_ended(row[at], widths[at]) if columns[at].ending else row[at] for at in kept))
    console.print(table)
    left_out = [column.heading for at, column in enumerate(columns) if at not in kept]
    if left_out:
        console.print(f"[dim]no room for: {', '.join(left_out)}{f' ({hint})' if hint else ''}[/dim]")


def line_width(cell: Text) -> int:
    return max((line.cell_len for line in cell.split("\n")), default=0)


def fitting(columns: Sequence[Column], natural: Sequence[int], room: int) -> list[int]:
    """The places of the columns that are kept."""
    kept = list(range(len(columns)))

    def needed() -> int:
        least = (min(natural[at], columns[at].least or natural[at]) for at in kept)
        return sum(least) + GAP * (len(kept) - 1)

    while needed() > room and any(columns[at].spare for at in kept):
        # Of equals, the last goes first.
        kept.remove(max(kept, key=lambda at: (columns[at].spare, at)))
    return kept


def shared(columns: Sequence[Column], natural: Sequence[int], kept: Sequence[int], room: int) -> dict[int, int]:
    """How wide each column becomes: those of figures as they need, those of text from what is left."""
    widths = {at: natural[at] for at in kept}
    texts = [at for at in kept if columns[at].least]
    left = room - GAP * (len(kept) - 1) - sum(width for at, width in widths.items() if at not in texts)
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
    """A table whose rows are printed as they come, so that the widths of its columns are settled before."""

    def __init__(self, console: Console, columns: Sequence[Column], widths: Sequence[int], hint: str = "") -> None:
        self.console = console
        self.columns = columns
        self.widths = widths
        self.hint = hint
        self.kept = fitting(columns, widths, console.width)

    def head(self) -> None:
        self._print([f"[dim]{column.heading}[/dim]" for column in self.columns])

    def add(self, row: Row) -> None:
        self._print(row)

    def close(self) -> None:
        left_out = [column.heading for at, column in enumerate(self.columns) if at not in self.kept]
        if left_out:
            self.console.print(f"[dim]no room for: {', '.join(left_out)}{f' ({self.hint})' if self.hint else ''}[/dim]")

    def _print(self, row: Row) -> None:
        from rich.text import Text

        line = Text()
        for at in self.kept:
            cell = row[at]
            shown = (cell if isinstance(cell, Text) else Text.from_markup(cell)).copy()
            shown.align("right" if self.columns[at].right else "left", max(self.widths[at], shown.cell_len))
            line.append(shown)
            line.append(" " * GAP)
        line.rstrip()
        self.console.print(line, soft_wrap=True)
