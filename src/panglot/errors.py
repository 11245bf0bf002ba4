"""What can go wrong before and while serving.

PanglotError
├── StartError        a package, setting or address is wrong: exit code 3
│   └── LoadError     the script itself failed to load; carries its traceback
├── FrontsEnded       the fronts of a server with several end again and again: exit code 1
└── Unanswered        the server stopped with requests unanswered: exit code 1
"""

from __future__ import annotations

import os


class PanglotError(Exception):
    """An error that knows its exit code and how to show itself in one line."""

    exit_code = 1


class StartError(PanglotError):
    """One line that names what is wrong, where, and how to mend it."""

    exit_code = 3

    def __init__(self, problem: str, *, file: str = "", line: int = 0, fix: str = "") -> None:
        self.problem = problem
        self.file = file
        self.line = line
        self.fix = fix
        super().__init__(problem)

    def __str__(self) -> str:
        return self.sentence()

    def sentence(self) -> str:
        file = near(self.file)
        where = f"{file}:{self.line}: " if self.line else f"{file}: " if file else ""
        how = f"(fix: {self.fix})" if self.fix else ""
        gap = " " if how and not self.problem.endswith("\n") else ""
        return where + self.problem + gap + how


def near(path: str) -> str:
    """The path as a person in this directory would write it."""
    here = os.getcwd() + os.sep
    return path.removeprefix(here) if path.startswith(here) else path


class LoadError(StartError):
    """The script's import, constructor or load failed. `traceback` is the script's own, whole."""

    def __init__(self, problem: str, *, file: str = "", line: int = 0, fix: str = "", traceback: str = "") -> None:
        super().__init__(problem, file=file, line=line, fix=fix)
        self.traceback = traceback


class FrontsEnded(PanglotError):
    """A front ended right after its start, too often in a row."""


class Unanswered(PanglotError):
    """The drain time passed with requests still open."""

    def __init__(self, count: int) -> None:
        self.count = count
        noun = "request was" if count == 1 else "requests were"
        super().__init__(f"{count} accepted {noun} not answered within the drain time")
