"""A side of a comparison that has answers of the past, for example of a platform that has been switched off."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from panglot.errors import StartError
from panglot.inputs.base import Given
from panglot.terminal.text import counted
from panglot.tools.check.compare import flat
from panglot.tools.check.sides import Answer

LINES = (".jsonl", ".ndjson")


class PastAnswers:
    """A file of JSON lines: the output of `panglot call --json`, or the answers alone, in the order of the inputs."""

    dialect = ""

    def __init__(self, name: str, inputs: Sequence[str]) -> None:
        self.name = name
        rows = _read(Path(name))
        if all(isinstance(row, dict) and "input" in row and ("answer" in row or "error" in row) for row in rows):
            self.answers = {str(row["input"]): _answer(row) for row in rows}
        elif len(rows) == len(inputs):
            self.answers = {given: Answer(dict(flat(row))) for given, row in zip(inputs, rows, strict=True)}
        else:
            fix = "write them down with: panglot call OLD_URL INPUT... --json > old.jsonl"
            raise StartError(f"{name} holds {counted(len(rows), 'answer')} to {counted(len(inputs), 'input')}", fix=fix)

    async def answer(self, given: Given) -> Answer:
        """The answer for the input of this name, or else for the only file of this name in another folder."""
        if given.name in self.answers:
            return self.answers[given.name]
        alike = [name for name in self.answers if Path(name).name == Path(given.name).name]
        return self.answers[alike[0]] if len(alike) == 1 else Answer(error="it has no answer to this input")


def _answer(row: dict[str, Any]) -> Answer:
    return Answer(error=str(row["error"])) if "error" in row else Answer(dict(flat(row["answer"])))


def _read(path: Path) -> list[Any]:
    """The values of the lines. Raises StartError."""
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise StartError(f"{path} cannot be read: {getattr(error, 'strerror', '') or error}") from None
    rows = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                rows.append(json.loads(line))
            except ValueError as error:
                raise StartError(f"{path}:{number} is not JSON: {error}") from None
    if not rows:
        raise StartError(f"{path} holds no answers")
    return rows
