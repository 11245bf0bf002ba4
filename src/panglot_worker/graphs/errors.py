"""The errors of a graph, with their places."""

from __future__ import annotations

import difflib
from typing import Iterable


class GraphError(Exception):
    """A graph that cannot run: one line for its author with file, line and fix."""

    def __init__(self, problem: str, file: str = "", line: int = 0, fix: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.file = file
        self.line = line
        self.fix = fix

    def __str__(self) -> str:
        where = "%s:%d: " % (self.file, self.line) if self.file and self.line else self.file and self.file + ": "
        return where + self.problem + (" (fix: %s)" % self.fix if self.fix else "")


class MissingVariable(GraphError):
    """A template names a variable that nobody gave."""


def near(word: str, known: Iterable[str]) -> str:
    """A suggestion: the known word most like this one, or all of them when they are few."""
    names = sorted(set(known))
    close = difflib.get_close_matches(word, names, n=1, cutoff=0.5)
    if close:
        return "did you mean '%s'?" % close[0]
    if 0 < len(names) <= 12:
        return "there is %s" % ", ".join("'%s'" % name for name in names)
    return ""
