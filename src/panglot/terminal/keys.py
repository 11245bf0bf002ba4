"""Keys of a terminal, one by one; and a list to choose from with them."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
import termios
import tty
from collections.abc import Iterator, Sequence

UP, DOWN, ENTER, LEAVE = ("\x1b[A", "\x1bOA", "k"), ("\x1b[B", "\x1bOB", "j"), ("\r", "\n"), ("q", "\x1b", "\x04", "")
MOST_BYTES = 256
KEY = re.compile(r"\x1b[\[O][0-9;]*.|.", re.DOTALL)
"""One key: an arrow is three characters."""
AROUND = 5
"""Lines of the screen that the list leaves free."""


@contextlib.contextmanager
def one_by_one() -> Iterator[None]:
    """While it is open, a terminal sends each key at once, and does not show it. Other inputs stay as they are."""
    if not sys.stdin.isatty():
        yield
        return
    before = termios.tcgetattr(sys.stdin)
    try:
        tty.setcbreak(sys.stdin)
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def choose(question: str, rows: Sequence[str]) -> int | None:
    """The row that a person chooses with the arrow keys and Enter; None where the person leaves with q."""
    at = 0
    window = Window(len(rows), max(3, min(len(rows), shutil.get_terminal_size().lines - AROUND)))
    with one_by_one():
        # Written only now: `setcbreak` has dropped keys that were pressed before the question.
        sys.stdout.write(f"{question}\n")
        window.draw(rows, at, first=True)
        for key in pressed():
            if key in ENTER:
                return at
            if key in LEAVE:
                return None
            at = (at + (key in DOWN) - (key in UP)) % len(rows)
            window.draw(rows, at)
    return None


def pressed() -> Iterator[str]:
    """The keys, one by one. Several may come in one read: of a key that is held down, or over a slow line."""
    while True:
        # Not by `sys.stdin.read`, whose buffer would wait for more characters than an arrow key has.
        given = os.read(sys.stdin.fileno(), MOST_BYTES).decode(errors="replace")
        # An empty text is the end of the input: it counts as a key that leaves.
        yield from KEY.findall(given) or [""]


class Window:
    """The part of a list that fits on the screen. It is always drawn in the same place."""

    def __init__(self, count: int, height: int) -> None:
        self.count = count
        self.height = height
        self.top = 0

    def draw(self, rows: Sequence[str], at: int, first: bool = False) -> None:
        """Write the rows around the chosen one, which is marked; and below them the keys."""
        self.top = min(max(self.top, at - self.height + 1), at)
        width = shutil.get_terminal_size().columns - 1
        lines = [
            f"\x1b[1m> {rows[row][: width - 2]}\x1b[0m" if row == at else f"  {rows[row][: width - 2]}"
            for row in range(self.top, self.top + self.height)
        ]
        more = f"{at + 1} of {self.count}; " if self.height < self.count else ""
        lines.append(f"\x1b[2m{more}up and down to move, Enter to choose, q to leave\x1b[0m")
        sys.stdout.write("" if first else f"\x1b[{len(lines)}A")
        sys.stdout.write("".join(f"\x1b[2K\r{line}\n" for line in lines))
        sys.stdout.flush()
