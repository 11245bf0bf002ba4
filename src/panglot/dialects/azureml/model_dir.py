"""AZUREML_MODEL_DIR: the folder below which a script finds its model."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from panglot.dialects.azureml.entry import Entry, joined_paths

VARIABLE = "AZUREML_MODEL_DIR"
MODELS = ("model", "models")


def choose(entry: Entry, named: str) -> tuple[Path, str]:
    """The folder, and the reason for it. `named` is its path by a setting or a variable.

    On the platform the variable names the folder that contains the registered file or folder. Where a script joins a
    path to it, the first candidate that has this path wins.
    """
    if named:
        return Path(os.path.abspath(named)), f"{VARIABLE} is {named}"
    deployment = entry.deployment
    if deployment is not None and deployment.model is not None:
        reason = f"{deployment.file.name} names the model {deployment.model.name}"
        return _first_with(entry, [deployment.model.parent, deployment.model]), reason
    candidates = list(_candidates(entry))
    chosen = _first_with(entry, candidates)
    return chosen, f"{VARIABLE} is {os.path.relpath(chosen, entry.root)}, below the package"


def _first_with(entry: Entry, candidates: list[Path]) -> Path:
    for path in joined_paths(entry.tree):
        for candidate in candidates:
            if candidate.is_dir() and (candidate / path).exists():
                return candidate
    return candidates[0]


def _candidates(entry: Entry) -> Iterator[Path]:
    """The folders that may be meant, the likeliest first: folders that contain `model` or `models`."""
    around = list(dict.fromkeys((entry.folder, entry.script.parent, entry.root)))
    if entry.folder.name in ("src", "code", "onlinescoring", "scoring", "online"):
        around.append(entry.folder.parent)
    containing = [folder for folder in around if any((folder / name).is_dir() for name in MODELS)]
    containing += [folder / "model-1" for folder in around if (folder / "model-1" / "model").is_dir()]
    yield from containing
    yield entry.folder
    yield from around
    yield from (folder / name for folder in containing for name in MODELS if (folder / name).is_dir())
