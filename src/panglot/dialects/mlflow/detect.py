"""The mlflow dialect: a folder that MLflow has saved a model in, with a file MLmodel that has `python_function`."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from panglot.dialects.mlflow import hints, signature
from panglot.dialects.mlflow.folder import ModelFolder, find, is_served_itself
from panglot.errors import StartError
from panglot.packages import conda
from panglot.packages.package import Package
from panglot.packages.requirements import REQUIREMENTS

LOOKS_FOR = "a file MLmodel with the flavor python_function, or a folder with one such model below"
CONFIG = "SERVING_MODEL_CONFIG"
TIMEOUT = "MLFLOW_SCORING_SERVER_REQUEST_TIMEOUT"
QUIET = {"MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true", "_MLFLOW_IS_IN_SERVING_ENVIRONMENT": "true"}
"""Variables for mlflow: it is in a server, and sends no reports about its use."""
CONDA = "conda.yaml"
LONGEST_VERSION = 64


def detect(path: Path) -> Package | None:
    """The package; None for other files; StartError for a model that cannot work."""
    if path.is_dir() and any(is_served_itself(script) for script in sorted(path.glob("*score*.py"))):
        # The model beside a script of Azure ML belongs to this script.
        return None
    model = find(path)
    if model is None:
        return None
    hints.check(model, os.environ)
    known = signature.read(model)
    return Package(
        name=_name(path, model),
        folder=model.folder,
        script=model.code or model.marker,
        dialect="mlflow",
        entry=f"the model, loaded by {model.loader}",
        reasons=_reasons(path, model),
        config=_config(path, model),
        defaults=_defaults(os.environ),
        options={
            "api": signature.api(model, known),
            "loader": model.loader,
            "has_example": signature.saved_example(model) is not None,
            "inputs": known.inputs,
            "outputs": known.outputs,
            "model_config": _model_config(os.environ),
        },
        environment=QUIET,
        facts=_facts(model, known),
        installs=_installs(model),
        problems=_problems(model),
    )


def _name(path: Path, model: ModelFolder) -> str:
    return path.name if path.is_dir() else model.folder.name


def _reasons(path: Path, model: ModelFolder) -> tuple[str, ...]:
    where = os.path.relpath(model.marker, path if path.is_dir() else path.parent)
    line = model.file.line("flavors", "python_function")
    return (f"{where}:{line} has the flavor python_function", f"{model.loader} loads it")


def _config(path: Path, model: ModelFolder) -> Path | None:
    folders = dict.fromkeys((path if path.is_dir() else path.parent, model.folder))
    return next((file for folder in folders if (file := folder / "panglot.toml").is_file()), None)


def _defaults(environ: Mapping[str, str]) -> dict[str, Any]:
    """The settings that variables of mlflow's server choose."""
    text = environ.get(TIMEOUT, "")
    if not text:
        return {}
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.001 <= seconds < float("inf"):
        raise StartError(f"{TIMEOUT} is {text!r}", fix="write the seconds that a request may take, such as 60")
    return {"timeout": seconds}


def _model_config(environ: Mapping[str, str]) -> dict[str, Any] | None:
    """The model's configuration in the environment, which wins over the one that was saved with the model."""
    text = environ.get(CONFIG, "")
    if not text:
        return None
    try:
        config = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise StartError(f"{CONFIG} is no JSON: {error}", fix="write an object, such as {}") from None
    if not isinstance(config, dict):
        raise StartError(f"{CONFIG} is no object", fix='write an object, such as {"temperature": 0.5}')
    return config


def _installs(model: ModelFolder) -> tuple[tuple[str, ...], ...]:
    """The pip list of `conda.yaml`. A requirements.txt beside it has the same list, and is installed in any case."""
    file = model.folder / CONDA
    if (model.folder / REQUIREMENTS).is_file() or not file.is_file():
        return ()
    packages = conda.pip_packages(file)
    return (packages,) if packages else ()


def _problems(model: ModelFolder) -> tuple[str, ...]:
    """The packages that conda alone would install, in one line."""
    file = model.folder / CONDA
    names = conda.conda_packages(file) if file.is_file() else ()
    if not names:
        return ()
    return (
        f"{CONDA} asks conda for {', '.join(names)}: --install installs its pip list alone, so install these yourself",
    )


def _facts(model: ModelFolder, known: signature.Signature) -> dict[str, list[str]]:
    """Facts for `panglot inspect`: the versions that the model was saved with, and its signature."""
    flavors = model.section("flavors")
    table, flavor = model.file.table, model.flavor
    versions = [f"mlflow {table['mlflow_version']}"] if table.get("mlflow_version") else []
    if flavor.get("python_version"):
        versions.append(f"Python {flavor['python_version']}")
    for about in flavors.values():
        for key, text in about.items() if isinstance(about, dict) else ():
            if key.endswith("_version") and key != "python_version" and isinstance(text, str):
                versions.append(f"{key.removesuffix('_version')} {text[:LONGEST_VERSION]}")
    return {
        "saved_with": versions,
        "flavors": list(flavors),
        "inputs": [_shown(entry) for entry in known.inputs],
        "outputs": [_shown(entry) for entry in known.outputs],
        "params": [_shown(entry) for entry in known.params],
    }


def _shown(entry: Mapping[str, Any]) -> str:
    spec = entry.get("tensor-spec")
    kind = f"{spec.get('dtype')} {spec.get('shape')}" if isinstance(spec, dict) else str(entry.get("type"))
    kind += "" if entry.get("required", True) else ", optional"
    return f"{entry['name']}: {kind}" if "name" in entry else kind
