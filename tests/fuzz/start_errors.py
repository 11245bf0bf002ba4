"""What the author of a file is told when it is wrong."""

from __future__ import annotations

from pathlib import Path

from panglot.errors import StartError

LONGEST = 1000


def one_line(error: StartError, file: Path) -> None:
    """One readable line that names the file and a line that is in it."""
    sentence = error.sentence()
    assert len(sentence.splitlines()) == 1, sentence
    assert len(sentence) < LONGEST, sentence
    assert Path(error.file).resolve() == file.resolve(), sentence
    count = file.read_bytes().count(b"\n") + 1
    assert 1 <= error.line <= count, f"{sentence} (line {error.line} of {count})"
