"""Models of Triton's Python backend: NAME/1/model.py with class TritonPythonModel, and its config.pbtxt."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from panglot.dialects.triton import config as configs
from panglot.dialects.triton import ensembles, environments
from panglot.dialects.triton.environments import PARAMETER
from panglot.errors import StartError
from panglot.packages.config_pbtxt import pbtxt, triton_config
from panglot.packages.model_folder import FIRST_VERSION, FoundModel, is_number
from panglot.packages.package import Package, config_beside
from panglot.packages.source import classes, functions, parse
from panglot.settings import Settings
from panglot_worker.line.description import TensorDescription

SCRIPT, CLASS = "model.py", "TritonPythonModel"
LOOKS_FOR = f"NAME/1/{SCRIPT} with class {CLASS}"


def detect(path: Path) -> Package | None:
    """The package; None for other files; StartError for a package of this platform that cannot work."""
    ensemble = _ensemble(path)
    if ensemble is not None:
        return ensemble
    script = _script(path)
    if script is None:
        return None
    node = next((node for node in classes(parse(script)) if node.name == CLASS), None)
    if node is None:
        return None
    if "execute" not in functions(node.body) and not node.bases:
        raise StartError(
            f"{CLASS} has no execute", file=str(script), line=node.lineno, fix="def execute(self, requests)"
        )
    version = script.parent.name if script.parent.name.isdigit() else "1"
    root = script.parent.parent if script.parent.name.isdigit() else script.parent
    config = configs.read(root)
    return Package(
        name=str(config.fields.get("name") or root.name),
        folder=script.parent,
        script=script,
        dialect="triton",
        entry=f"{CLASS}.execute",
        reasons=(f"{script.relative_to(root)}:{node.lineno} defines class {CLASS}", *_configured(root)),
        problems=config.problems,
        config=config_beside(script) or config_beside(root / SCRIPT),
        defaults=config.defaults,
        options={"config": config.fields, "root": str(root), "version": version},
        facts={"version": (version,)},
        whole=root,
        sticks_by="sequence_id" if "sequence_batching" in config.fields else "",
        calls_models=True,
    )


def _ensemble(path: Path) -> Package | None:
    """The ensemble at a path: the file that describes it, its folder, or that of one of its versions."""
    folder = path.parent if path.name == configs.NAME else path
    root = folder.parent if is_number(folder.name) else folder
    config = root / configs.NAME
    # Only the file beside the versions says that this is an ensemble: the folder of a version may be empty.
    if not config.is_file() or not ensembles.is_ensemble(pbtxt.read(config)):
        return None
    return ensembles.package(root, folder.name if folder is not root else FIRST_VERSION)


def join(package: Package, models: Sequence[tuple[str, str, Package]]) -> Package:
    """The package, completed by the other models of the server, each with its name and version. Raises StartError."""
    return ensembles.join(package, models) if "ensemble" in package.options else package


def check_loaded(package: Package, models: Sequence[tuple[str, str, Package, TensorDescription | None]]) -> None:
    """Check the steps of an ensemble by the tensors of the loaded models. Raises StartError."""
    if "ensemble" in package.options:
        ensembles.check_loaded(package, models)


def arrange(package: Package, settings: Settings) -> Package:
    """The package with the interpreter of its environment, unless the settings name one. Raises StartError."""
    root = Path(str(package.options["root"]))
    if "ensemble" in package.options:
        return package
    if package.sticks_by and settings.workers is not None and settings.workers.elastic:
        problem = "a model of sequences has a fixed number of workers: each has sequences of its own"
        raise StartError(problem, file=str(root / configs.NAME), fix=f"--workers {settings.workers.most}")
    environment = configs.read(root).environment
    if environment is None or settings.python:
        return package
    if settings.ray:
        note = f"{configs.NAME}:{environment.line}: {PARAMETER} has no effect on other machines; --python has"
        return dataclasses.replace(package, problems=(*package.problems, note))
    python = environments.interpreter(environment)
    return dataclasses.replace(package, defaults={**package.defaults, "python": python})


def _script(path: Path) -> Path | None:
    """The script at a path: the file itself, in the folder, or in the folder of the newest version to be served."""
    if path.is_file():
        if path.suffix == ".py":
            return path
        return _script(path.parent) if path.name == configs.NAME else None
    root = path.parent if is_number(path.name) else path
    name = configs.script_name(root) or SCRIPT
    if (path / name).is_file():
        return path / name
    numbers = sorted((entry for entry in path.iterdir() if is_number(entry.name)), key=lambda entry: int(entry.name))
    versions = [FoundModel(root.name, entry.name, entry) for entry in numbers if (entry / name).is_file()]
    if versions and (root / configs.NAME).is_file():
        versions = triton_config.chosen(versions, root / configs.NAME)
    return versions[-1].path / name if versions else None


def _configured(root: Path) -> tuple[str, ...]:
    return (f"{configs.NAME} beside it",) if (root / configs.NAME).is_file() else ()
