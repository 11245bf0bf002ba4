"""Programs that Paddle exported, recognised by their first bytes. The parameters of a program lie beside it."""

from __future__ import annotations

from pathlib import Path

OLD, NEW, PARAMETERS = ".pdmodel", ".json", ".pdiparams"
HEAD = 64
SIGN = b'"magic":"pir"'
"""Part of the beginning of every program in JSON."""


def is_program(path: Path) -> bool:
    """Whether a file is a program: by its ending, a JSON file by how it begins."""
    if path.suffix == OLD:
        return path.is_file()
    if path.suffix != NEW or not path.is_file():
        return False
    with path.open("rb") as file:
        return SIGN in file.read(HEAD).replace(b" ", b"")
