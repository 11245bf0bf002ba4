"""The command line of torch-model-archiver that a repository shows in its README or a script: which files are what."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from panglot.dialects.torchserve.manifest import Manifest
from panglot_worker.files.package_files import content_if_any

PROGRAM = "torch-model-archiver"
PLACES = ("README*", "readme*", "*.md", "*.sh", "Makefile", "Dockerfile*")
LARGEST = 1 << 20
MOST_FILES = 50
EXTRA = "extra_files"
OPTIONS = {
    "--model-name": "model_name",
    "--version": "version",
    "-v": "version",
    "--model-file": "model_file",
    "--serialized-file": "serialized_file",
    "--handler": "handler",
    "--requirements-file": "requirements_file",
    "-r": "requirements_file",
    "--config-file": "config_file",
    "-c": "config_file",
    "--extra-files": EXTRA,
}
PATHS = ("model_file", "serialized_file", "requirements_file", "config_file")


@dataclass(frozen=True)
class ArchiverLine:
    """A line that makes an archive, and where it stands."""

    manifest: Manifest
    """Its files are paths from the folder."""
    file: str
    line: int
    extra: tuple[str, ...] = ()
    """The further files and folders of the archive that are here, as paths from the folder."""


def find(folder: Path) -> list[ArchiverLine]:
    """The command lines in a folder's documents and scripts whose handler is a file here or a plain name.

    Each handler comes once.
    """
    lines: dict[str, ArchiverLine] = {}
    files = [file for pattern in PLACES for file in sorted(folder.glob(pattern)) if file.is_file()]
    for file in list(dict.fromkeys(files))[:MOST_FILES]:
        text = content_if_any(file, LARGEST).decode("utf-8", "replace")
        for number, words in _commands(text):
            fields = _options(words)
            manifest = _manifest(fields, folder)
            if manifest is not None:
                extra = tuple(
                    here for name in fields.get(EXTRA, "").split(",") if (here := _here(name.strip(), folder))
                )
                lines.setdefault(manifest.handler, ArchiverLine(manifest, file.name, number, extra))
    return list(lines.values())


def _commands(text: str) -> Iterator[tuple[int, list[str]]]:
    """The words of every call of the archiver; a backslash at its end joins a line with the next."""
    for match in re.finditer(rf"{PROGRAM}((?:\\\r?\n|[^\n])*)", text):
        # In a sentence, or between back quotes, the call ends before the line does.
        call = re.split(r"`|&&|;|\|", match[1].replace("\\\r\n", " ").replace("\\\n", " "))[0]
        try:
            words = shlex.split(call)
        except ValueError:
            continue
        yield text.count("\n", 0, match.start()) + 1, words


def _options(words: list[str]) -> dict[str, str]:
    """The options of a call that are known here, by the fields that they stand for."""
    fields: dict[str, str] = {}
    position = 0
    while position < len(words):
        name, equals, value = words[position].partition("=")
        if name in OPTIONS:
            if not equals:
                position += 1
                value = words[position] if position < len(words) else ""
            fields[OPTIONS[name]] = value
        position += 1
    return fields


def _manifest(said: dict[str, str], folder: Path) -> Manifest | None:
    """The manifest that a call stands for. None without a handler that is a file here, or a plain name."""
    fields: dict[str, Any] = {name: value for name, value in said.items() if name != EXTRA}
    handler = fields.get("handler", "")
    if not handler or "<" in handler or "$" in handler:
        return None
    module, colon, function = handler.partition(":")
    if module.endswith(".py"):
        here = _here(module, folder)
        if not here.endswith(".py"):
            return None
        fields["handler"] = here + colon + function
    elif "/" in module:
        return None
    for name in PATHS:
        if name in fields:
            # A file that is not here keeps its name, so that `_problems` can say that it is missing.
            fields[name] = _here(fields[name], folder) or _base(fields[name])
    return Manifest(**fields)


def _here(name: str, folder: Path) -> str:
    """A file that a call names, as a path from the folder: calls are often written for the folder above."""
    if Path(name).is_absolute() or "$" in name or "<" in name:
        return ""
    parts = Path(name).parts
    for first in range(len(parts)):
        path = Path(*parts[first:])
        if ".." not in path.parts and (folder / path).exists():
            return str(path)
    return ""


def _base(name: str) -> str:
    """The name that a file has in the archive; nothing for one that a shell would fill in."""
    return "" if "$" in name or "<" in name else Path(name).name
