"""Reasons why a saved model cannot be loaded, as far as its files tell."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from typing import Any

from panglot.dialects.mlflow.folder import FLAVOR, ModelFolder
from panglot.packages.lfs_pointers import is_pointer
from panglot.packages.source import parse

JAVA = {"mlflow.spark": "Spark", "mlflow.h2o": "H2O"}
"""Loaders that start a Java machine."""
FILE_KEYS = ("data", "model_path", "code", "python_model")
"""Keys of the flavor that name files of the folder."""


def check(model: ModelFolder, environ: Mapping[str, str]) -> None:
    """Refuse a model that cannot be loaded here. Raises StartError."""
    java = JAVA.get(model.loader)
    if java and not environ.get("JAVA_HOME") and shutil.which("java") is None:
        problem = f"this is a model of {java}, which needs Java, and there is none"
        raise model.file.error(
            problem, "flavors", FLAVOR, "loader_module", fix="install a Java runtime, or set JAVA_HOME"
        )
    for keys, name in _named(model.flavor):
        _check_file(model, keys, name)
    if model.code is not None:
        _check_file(model, ("model_code_path",), model.code.name)
        parse(model.code)


def _named(flavor: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
    """The files and folders that the flavor names, with the keys that name them."""
    for key in FILE_KEYS:
        name = flavor.get(key)
        if isinstance(name, str) and name:
            yield (key,), name
    artifacts = flavor.get("artifacts")
    for key, artifact in artifacts.items() if isinstance(artifacts, dict) else ():
        name = artifact.get("path") if isinstance(artifact, dict) else None
        if isinstance(name, str) and name:
            yield ("artifacts", key, "path"), name


def _check_file(model: ModelFolder, keys: tuple[str, ...], name: str) -> None:
    where = ("flavors", FLAVOR, *keys)
    path = model.folder / name
    if not path.exists():
        if "\\" in name:
            fix = f"write {name.replace(chr(92), '/')}"
            raise model.file.error(f"{name} is a path of Windows, which nothing finds here", *where, fix=fix)
        fix = "copy it here: with the model's artifacts, or with git lfs pull or dvc pull"
        raise model.file.error(f"MLmodel names {name}, and the folder has no such thing", *where, fix=fix)
    # A link to a place outside is left alone: the file there is not part of the package.
    if not os.path.realpath(path).startswith(os.path.realpath(model.folder) + os.sep):
        return
    if path.is_file() and is_pointer(path):
        problem = f"{name} is a pointer of Git LFS and not the file"
        raise model.file.error(problem, *where, fix="run git lfs pull")
