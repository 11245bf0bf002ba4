"""The Dockerfile of a worker: the script that it runs, the folder it runs in, and other programs that it starts."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from panglot_worker.files.package_files import LARGEST_CONFIGURATION, content_if_any

NAME = "Dockerfile"
INSTRUCTION = re.compile(r"\s*(CMD|ENTRYPOINT|WORKDIR)\s+(.+)", re.IGNORECASE)


@dataclass(frozen=True)
class Dockerfile:
    """The instructions of a Dockerfile that run the worker. Without a file, all fields are empty."""

    words: tuple[str, ...] = ()
    """The words of its ENTRYPOINT and CMD."""
    line: int = 0
    """The line of the later of these."""
    workdir: str = ""

    @property
    def script(self) -> str:
        """The script it runs, with the path that it has in the image; empty where it runs none itself."""
        return next((word for word in self.words if word.endswith(".py")), "")

    @property
    def shell_script(self) -> str:
        """The shell script it runs; empty where it runs none."""
        return next((word for word in self.words if word.endswith(".sh")), "")

    def names(self, script: Path, folder: Path) -> bool:
        """Whether it runs this script of the package's folder."""
        if not self.script:
            return False
        named, own = PurePosixPath(self.script).parts, script.relative_to(folder).parts
        # COPY is not followed. So the name must be the same, and also the folder, unless the image has the script in
        # its root.
        return named[-len(own) :] == own or (named[-1:] == own[-1:] and len(named) <= 2)


def read(folder: Path) -> Dockerfile:
    """The Dockerfile of a folder."""
    text = content_if_any(folder / NAME, LARGEST_CONFIGURATION).decode("utf-8", "replace")
    commands: dict[str, tuple[int, list[str]]] = {}
    workdir = ""
    for number, line in _instructions(text):
        match = INSTRUCTION.match(line)
        if match is None:
            continue
        kind, value = match[1].upper(), match[2].strip()
        if kind == "WORKDIR":
            workdir = str(PurePosixPath(workdir or "/") / value.strip("\"'"))
        else:
            commands[kind] = (number, _words(value))
    words = [word for kind in ("ENTRYPOINT", "CMD") for word in commands.get(kind, (0, []))[1]]
    last = max((number for number, _ in commands.values()), default=0)
    return Dockerfile(tuple(words), last, workdir)


def _instructions(text: str) -> Iterator[tuple[int, str]]:
    """Each instruction as one line, and the number of the line that it begins in."""
    lines = iter(enumerate(text.splitlines(), 1))
    for number, line in lines:
        while line.rstrip().endswith("\\"):
            line = line.rstrip()[:-1] + " " + next(lines, (0, ""))[1]
        yield number, line


def _words(value: str) -> list[str]:
    """The words of an instruction in either of its forms; where it runs a shell, also the words of the shell's line."""
    try:
        words = [str(word) for word in json.loads(value)] if value.startswith("[") else shlex.split(value)
    except ValueError:
        words = value.split()
    return [part for word in words for part in (word.split() if " " in word else [word])]
