"""The azureml dialect: a scoring script of Azure ML with `init()` and `run()`, or a deployment file that names one."""

from __future__ import annotations

import ast
import dataclasses
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from panglot.dialects.azureml import entry as entries
from panglot.dialects.azureml import model_dir, variables
from panglot.dialects.azureml.entry import Entry
from panglot.dialects.azureml.settings import Settings
from panglot.errors import near
from panglot.packages import conda
from panglot.packages.package import FixedPath, Package, outside
from panglot.packages.source import imported

LOOKS_FOR = (
    "score.py (or scoring.py, main.py) with init() and run() that says azureml, AZUREML_MODEL_DIR or inference_schema, "
    "or a deployment .yml with scoring_script"
)
APP_ROOT = "/var/azureml-app"
"""Where the platform's images have the code, with the models in `azureml-models` below it."""
JOBLIB = "sklearn.externals.joblib"
CONDA = ("conda.yml", "conda.yaml", "conda_dependencies.yml", "environment.yml", "environment/conda.yaml")


def detect(path: Path, given: Mapping[str, Any]) -> Package | None:
    """The package; None for other files; StartError for a package of this platform that cannot work."""
    named = str(given.get("entry_script") or os.environ.get("AZUREML_ENTRY_SCRIPT", ""))
    entry = entries.find(path, named)
    if entry is None:
        return None
    known = variables.read(entry, os.environ)
    wanted = str(given.get("model_dir") or known.get(model_dir.VARIABLE))
    folder, reason = model_dir.choose(entry, wanted)
    fixed = fixed_paths(entry)
    return Package(
        name=_name(entry, path),
        folder=entry.folder,
        script=entry.script,
        dialect="azureml",
        entry="init, run",
        reasons=(entry.reason, reason),
        problems=(*known.problems, *_missing_model(entry, folder), *_removed(entry)),
        config=_config(entry, path),
        defaults=variables.defaults(known, entry),
        options={
            **variables.options(known),
            "raw": entry.is_raw,
            "decorated": entry.is_decorated,
            "import_folders": _import_folders(entry, known),
            "model_dir": str(folder),
        },
        environment=_environment(entry, known, folder),
        facts=_facts(entry, folder),
        installs=_installs(entry),
        run_links=_links(entry, folder) if fixed else {},
        fixed_paths=fixed,
        whole=entry.root if entry.root != entry.folder else None,
        elsewhere=outside(entry.root, str(folder)),
    )


def _name(entry: Entry, path: Path) -> str:
    if path.is_dir():
        return path.name
    return path.stem if path.suffix == ".py" and path.stem not in ("score", "main", "scoring") else path.parent.name


def _config(entry: Entry, path: Path) -> Path | None:
    folders = dict.fromkeys((path if path.is_dir() else path.parent, entry.folder))
    return next((file for folder in folders if (file := folder / "panglot.toml").is_file()), None)


def _import_folders(entry: Entry, known: variables.Variables) -> list[str]:
    """The folders that the platform puts on sys.path behind the environment, besides the code's own folder."""
    source = known.get("AZUREML_SOURCE_DIRECTORY")
    return [str(entry.folder / source)] if source else []


def _environment(entry: Entry, known: variables.Variables, folder: Path) -> dict[str, str]:
    """The variables of the platform's container, as the script finds them."""
    own = entry.deployment.variables if entry.deployment is not None else {}
    return {
        **{name: os.environ.get(name) or text for name, text in own.items()},
        "AZUREML_MODEL_DIR": str(folder),
        "AML_APP_ROOT": str(entry.folder),
        "AZUREML_ENTRY_SCRIPT": os.path.relpath(entry.script, entry.folder),
    }


def _missing_model(entry: Entry, folder: Path) -> tuple[str, ...]:
    """A warning for each path below the model's folder that the script names, and the folder does not have."""
    wanted = dict.fromkeys(entries.joined_paths(entry.tree))
    return tuple(
        f"{entry.script.name} reads {path} below AZUREML_MODEL_DIR, and {folder} has no such thing; "
        "--model-dir names another folder"
        for path in wanted
        if path and not (folder / path).exists()
    )


def _removed(entry: Entry) -> Iterator[str]:
    """A warning for the import by which older scripts load their models."""
    line = imported(entry.tree).get(JOBLIB)
    if line is not None:
        yield f"{entry.script.name}:{line} imports {JOBLIB}, which scikit-learn 0.23 removed; write `import joblib`"


def _facts(entry: Entry, folder: Path) -> dict[str, list[str]]:
    mode = "the HTTP request (@rawhttp)" if entry.is_raw else "the body as text"
    if entry.is_decorated:
        mode = "one value for each parameter (inference_schema)"
    described = [near(str(entry.deployment.file))] if entry.deployment is not None else []
    return {"run_gets": [mode], "model_folder": [near(str(folder))], "deployment": described}


def _installs(entry: Entry) -> tuple[tuple[str, ...], ...]:
    """The packages in the conda file of the deployment, or of the package."""
    named = entry.deployment.conda if entry.deployment is not None else None
    folders = dict.fromkeys((entry.folder, entry.root, entry.folder.parent))
    inside = [folder / name for folder in folders if folder.is_relative_to(entry.root) for name in CONDA]
    file = next((file for file in (named, *inside) if file is not None and file.is_file()), None)
    packages = (
        tuple(dict.fromkeys((*conda.conda_packages(file), *conda.pip_packages(file)))) if file is not None else ()
    )
    return (packages,) if packages else ()


# Paths of the platform


def fixed_paths(entry: Entry) -> tuple[FixedPath, ...]:
    """Texts of the script that begin with the platform's folder."""
    return tuple(
        FixedPath(node.value, entry.script.name, node.lineno, APP_ROOT, "app")
        for node in ast.walk(entry.tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if node.value == APP_ROOT or node.value.startswith(APP_ROOT + "/")
    )


def _links(entry: Entry, folder: Path) -> dict[str, Path]:
    """The platform's folder as links: the code, and the models."""
    links = {f"app/{child.name}": child for child in sorted(entry.folder.iterdir())}
    return {**links, "app/azureml-models": folder}


def arrange(package: Package, settings: Settings) -> Package:
    """The package with the model's folder that panglot.toml names. `detect` has used flags and variables already."""
    if not settings.model_dir or settings.model_dir == package.options["model_dir"]:
        return package
    folder = os.path.abspath(settings.model_dir)
    return dataclasses.replace(
        package,
        options={**package.options, "model_dir": folder},
        environment={**package.environment, "AZUREML_MODEL_DIR": folder},
        elsewhere=outside(package.root, folder),
    )
