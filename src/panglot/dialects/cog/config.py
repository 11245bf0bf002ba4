"""The cog.yaml of a package: which class or function predicts, and what its image would have."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from panglot.packages import yaml_file
from panglot.packages.yaml_file import YamlFile

NAME = "cog.yaml"
ENTRIES = ("predict", "run")
FORM, TRAIN_FORM = 'predict: "predict.py:Predictor"', 'train: "train.py:train"'
TRAIN = "train"


@dataclass(frozen=True)
class Config:
    """A cog.yaml that was read."""

    folder: Path
    file: YamlFile

    @property
    def key(self) -> str:
        """The key that names the predictor; empty where there is none."""
        return next((key for key in ENTRIES if self.file.table.get(key)), "")

    @property
    def entry(self) -> tuple[str, str]:
        """The file, and the name of a class or function in it, or an empty name. Raises StartError."""
        return self._named(self.key, FORM)

    @property
    def trainer(self) -> tuple[str, str] | None:
        """The file and the function that trains; None where there is none. Raises StartError."""
        if not self.file.table.get(TRAIN):
            return None
        script, name = self._named(TRAIN, TRAIN_FORM)
        if not (self.folder / script).is_file():
            raise self.file.error(f"there is no {script}", TRAIN, fix="name the script that trains, or remove the line")
        return script, name or TRAIN

    def _named(self, key: str, form: str) -> tuple[str, str]:
        value = self.file.table.get(key)
        if not isinstance(value, str):
            raise self.file.error(f"{key} must be a text", key, fix=form)
        script, _, name = value.partition(":")
        if not script.endswith(".py") or ".." in Path(script).parts or Path(script).is_absolute():
            raise self.file.error(f"{key} names {script!r}, which is no script of this folder", key, fix=form)
        return script, name.strip()

    def section(self, key: str) -> dict[str, Any]:
        value = self.file.table.get(key)
        return value if isinstance(value, dict) else {}

    @property
    def concurrency(self) -> int:
        """How many predictions of an async method may run at once. Raises StartError."""
        value = self.section("concurrency").get("max", 0)
        if type(value) is not int or value < 0:
            raise self.file.error("concurrency.max must be a number from 1", "concurrency", "max")
        return value

    @property
    def environment(self) -> dict[str, str]:
        """The variables of the image, which are a list of NAME=VALUE."""
        entries = self.file.table.get("environment")
        pairs = [str(entry).partition("=") for entry in entries] if isinstance(entries, list) else []
        return {name: value for name, separator, value in pairs if separator}

    @property
    def packages(self) -> tuple[str, ...]:
        """The packages that pip would install into the image."""
        listed = self.section("build").get("python_packages")
        return tuple(str(entry) for entry in listed) if isinstance(listed, list) else ()

    def hints(self) -> Iterator[str]:
        """A line for each thing that the image of the platform has, and this machine may lack."""
        build = self.section("build")
        listed = build.get("system_packages")
        if isinstance(listed, list) and listed:
            names = " ".join(map(str, listed))
            yield f"{self._line('system_packages')} wants system packages: apt-get install {names}"
        if build.get("run"):
            yield f"{self._line('run')} has commands for the image, which are not run here: run them by hand"
        if build.get("gpu") and not Path("/proc/driver/nvidia").exists():
            yield f"{self._line('gpu')} wants a GPU, and this machine has none"

    def _line(self, key: str) -> str:
        return f"{NAME}:{self.file.line('build', key)}"


def read(folder: Path) -> Config | None:
    """The cog.yaml of a folder; None where there is none. Raises StartError."""
    file = folder / NAME
    return Config(folder, yaml_file.read(file)) if file.is_file() else None
