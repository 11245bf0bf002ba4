"""`EXECUTION_ENV_PATH` of a config.pbtxt: the Python environment that a model is to run in, packed or as a folder."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from panglot.errors import StartError
from panglot.packages import archive_cache
from panglot.packages.archives import ArchiveLimits
from panglot.packages.config_pbtxt.pbtxt import Message

PARAMETER = "EXECUTION_ENV_PATH"
MODEL_DIRECTORY = "$$TRITON_MODEL_DIRECTORY"
INTERPRETERS = ("bin/python", "bin/python3")
LIMITS = ArchiveLimits(files=500_000)
"""Environments have many small files."""


class EnvironmentPath(NamedTuple):
    """The place of a model's environment, and the line with it."""

    text: str
    file: Path
    line: int

    @property
    def path(self) -> Path:
        """The archive or folder. A relative path begins at the model's folder."""
        model = self.file.parent
        return model / self.text.replace(MODEL_DIRECTORY, str(model), 1)


def named(config: Message, file: Path) -> EnvironmentPath | None:
    """The environment that a configuration names, if it names one. Raises StartError."""
    for entry in config.messages("parameters"):
        if entry.one("key") != PARAMETER:
            continue
        values = entry.messages("value")
        text = str(values[-1].one("string_value")) if values else ""
        if not text or "://" in text:
            problem = f"{PARAMETER} must name an archive or a folder of this machine"
            raise StartError(problem, file=str(file), line=entry.line, fix=f"{MODEL_DIRECTORY}/environment.tar.gz")
        return EnvironmentPath(text, file, entry.line)
    return None


def interpreter(environment: EnvironmentPath) -> str:
    """The interpreter of an environment. An archive is unpacked, unless it is already. Raises StartError."""
    path = environment.path
    if not path.exists():
        problem = f"{PARAMETER}: {path} does not exist"
        raise StartError(problem, file=str(environment.file), line=environment.line, fix="pack it with conda-pack")
    folder = archive_cache.unpacked(path, LIMITS) if path.is_file() else path
    for name in INTERPRETERS:
        if (folder / name).is_file():
            return str(folder / name)
    problem = f"{PARAMETER}: {path} has no {INTERPRETERS[0]}"
    raise StartError(problem, file=str(environment.file), line=environment.line, fix="pack a whole environment")
