"""A folder that MLflow has saved a model in: where its MLmodel file is, and what this file says."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from panglot.errors import StartError, near
from panglot.packages import yaml_file
from panglot.packages.source import functions, parse
from panglot.packages.yaml_file import YamlFile

MARKER = "MLmodel"
FLAVOR = "python_function"
DEEPEST = 8
"""Levels below a folder in which its only model is looked for: `mlruns/0/RUN/artifacts/model` has five."""
MOST_ENTRIES = 10_000
"""Files and folders that are looked at for it."""
SKIPPED = frozenset(("node_modules", "site-packages", "__pycache__"))
SERVED = frozenset(("Model", "predict", "predict_batch", "EndpointHandler", "PreTrainedPipeline"))
"""Names of a script that is served itself. It uses the models below its folder, or they are left from training."""


@dataclass(frozen=True)
class ModelFolder:
    """A saved model."""

    folder: Path
    file: YamlFile
    flavor: dict[str, Any]
    """The part of MLmodel about loading the model as a Python function."""

    @property
    def marker(self) -> Path:
        return self.folder / MARKER

    @property
    def loader(self) -> str:
        """The module that loads the model."""
        return str(self.flavor.get("loader_module") or "")

    @property
    def code(self) -> Path | None:
        """The file of a model that was saved as code. MLmodel has its path on the machine that saved it."""
        named = self.flavor.get("model_code_path")
        if not isinstance(named, str) or not named:
            return None
        return self.folder / named.replace("\\", "/").rpartition("/")[2]

    def section(self, name: str) -> dict[str, Any]:
        """A mapping of MLmodel; empty where there is none."""
        section = self.file.table.get(name)
        return section if isinstance(section, dict) else {}


def find(path: Path) -> ModelFolder | None:
    """The model at a path: an MLmodel file, its folder, or a folder with one model below. Raises StartError."""
    if path.is_file():
        return read(path) if path.name == MARKER else None
    if (path / MARKER).is_file():
        return read(path / MARKER)
    if any(is_served_itself(script) for script in sorted(path.glob("*.py"))):
        return None
    markers = list(_below(path))
    if len(markers) > 1:
        names = " and ".join(os.path.relpath(marker.parent, path) for marker in markers[:3])
        fix = f"name it: panglot serve {near(str(markers[0].parent))}"
        raise StartError(f"there are several MLflow models here: {names}", file=str(path), fix=fix)
    return read(markers[0]) if markers else None


def is_served_itself(script: Path) -> bool:
    """Whether another dialect serves a script. A script that cannot be read counts: that dialect says what is wrong."""
    try:
        body = parse(script).body
    except StartError:
        return True
    names = {*functions(body), *(node.name for node in body if isinstance(node, ast.ClassDef))}
    return bool(names & SERVED) or {"init", "run"} <= names


def _below(path: Path) -> Iterator[Path]:
    """The MLmodel files below a folder. The folders of a model are not searched: models in it are parts of it."""
    entries = 0
    for name, folders, files in os.walk(path):
        entries += len(folders) + len(files)
        if MARKER in files:
            folders.clear()
            yield Path(name) / MARKER
        depth = len(Path(name).relative_to(path).parts)
        if depth >= DEEPEST or entries > MOST_ENTRIES:
            folders.clear()
        folders[:] = sorted(folder for folder in folders if folder not in SKIPPED and not folder.startswith("."))


def read(marker: Path) -> ModelFolder:
    """The model of an MLmodel file. Raises StartError for a model that cannot be loaded in Python."""
    file = yaml_file.read(marker)
    flavors = file.table.get("flavors")
    if not isinstance(flavors, dict) or not isinstance(flavors.get(FLAVOR), dict):
        others = ", ".join(flavors) if isinstance(flavors, dict) and flavors else "none"
        problem = f"MLmodel has no flavor {FLAVOR} (its flavors: {others}), which is how Python calls a model"
        raise file.error(problem, "flavors", fix="save it with a flavor of mlflow that has it, or with mlflow.pyfunc")
    flavor = flavors[FLAVOR]
    if not isinstance(flavor.get("loader_module"), str) or not flavor["loader_module"]:
        problem = f"the flavor {FLAVOR} has no loader_module"
        raise file.error(problem, "flavors", FLAVOR, fix="save the model again: mlflow writes it")
    return ModelFolder(marker.parent, file, flavor)
