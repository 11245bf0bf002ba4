"""A `panglot.toml` as it is written: its values, and on which line each stands."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from panglot.errors import StartError
from panglot.terminal.text import brief
from panglot_worker.graphs import positions, reading
from panglot_worker.graphs.errors import GraphError


@dataclass(frozen=True)
class TomlFile:
    path: Path
    table: dict[str, Any]
    lines: dict[positions.Path, int]

    def line(self, *keys: str) -> int:
        """The line of the value at these keys, or of the table it would be in."""
        return positions.nearest(self.lines, keys)

    def error(self, problem: str, *keys: str, fix: str = "") -> StartError:
        """The error to raise about the value at these keys."""
        return StartError(brief(problem), file=str(self.path), line=self.line(*keys), fix=fix)


def read(path: Path) -> TomlFile:
    """Read a TOML file. Raises StartError, naming the line, for one that is no TOML."""
    try:
        text = reading.text_of(str(path))
        return TomlFile(path, reading.parse_toml(text, str(path), []), positions.lines(text))
    except GraphError as error:
        raise as_start_error(error) from None
    except RecursionError:
        raise StartError("this is nested too deeply", file=str(path)) from None


def as_start_error(error: GraphError) -> StartError:
    """An error of the grammar as a StartError."""
    return StartError(brief(error.problem), file=error.file, line=error.line, fix=brief(error.fix))
