"""Folders of small models."""

from __future__ import annotations

from pathlib import Path


def write_model(folder: Path, says: str = "", body: str = "") -> Path:
    """A package that answers with what it was given and a word of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    said = says or folder.name
    code = body or f'def predict(x):\n    return {{"model": {said!r}, "got": x}}\n\n\ndef example():\n    return 1\n'
    (folder / "model.py").write_text(code)
    return folder


def all_of(folder: Path) -> Path:
    """What `serving` is given to serve a folder of models."""
    return Path(f"--models={folder}")
