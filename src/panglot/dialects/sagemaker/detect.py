"""The sagemaker dialect: an inference script of Amazon SageMaker, in a model.tar.gz, a model's folder or beside it."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from panglot.dialects.sagemaker import entry as entries
from panglot.dialects.sagemaker import flavor as flavors
from panglot.dialects.sagemaker import model_data, pipeline, variables
from panglot.dialects.sagemaker.entry import Entry
from panglot.dialects.sagemaker.flavor import GENERIC, Flavor
from panglot.dialects.sagemaker.settings import Settings
from panglot.errors import StartError, near
from panglot.packages.package import FixedPath, Package, outside
from panglot.packages.source import functions, imported, texts_beginning

LOOKS_FOR = (
    "code/inference.py, inference.py or another script with model_fn(model_dir), transform_fn, or input_fn and "
    "predict_fn; handler_service.py with a subclass of DefaultHandlerService; a model's folder without a script needs "
    "--flavor; pipeline.json with Containers"
)
ROOT = "/opt/ml/model"
FIXED = re.compile(rf"({ROOT})(?=/|$)")
NEEDED = ("model_fn", "predict_fn")
CHOSEN = ("flavor", "entry_point", "model_data")


def detect(path: Path, given: Mapping[str, Any]) -> Package | None:
    """The package; None for other files; StartError for a package of this platform that cannot work."""
    chain = pipeline.package(path)
    if chain is not None:
        return chain
    chosen = {name: str(given.get(name) or "") for name in CHOSEN}
    entry = entries.find(path, chosen["entry_point"] or os.environ.get(variables.PROGRAM, ""))
    if entry is None and (not path.is_dir() or not chosen["flavor"]):
        return None
    return _package(entry, entry.root if entry is not None else path, path, chosen)


def _package(entry: Entry | None, root: Path, path: Path, chosen: Mapping[str, str]) -> Package:
    folder, why = model_data.choose(entry, root, chosen["model_data"])
    flavor = _flavor(entry, folder, chosen["flavor"])
    _check(entry, flavor)
    code = entry.folder if entry is not None else root
    script = entry.script if entry is not None else root / entries.DEFAULT
    fixed = _fixed_paths(entry, root, folder)
    config = next((file for where in (root, code) if (file := where / "panglot.toml").is_file()), None)
    return Package(
        name=_name(path, root, script),
        folder=code,
        script=script,
        dialect="sagemaker",
        entry=_called(entry),
        reasons=(*((entry.reason,) if entry is not None else ()), why, f"container {flavor.name}: {flavor.reason}"),
        problems=tuple(variables.problems(os.environ)),
        config=config,
        defaults=variables.defaults(os.environ),
        options={
            "flavor": flavor.name,
            "has_script": entry is not None,
            "is_service": entry is not None and entry.is_service,
            "model_dir": str(folder),
            "functions": sorted(entry.names) if entry is not None else [],
            "accept": os.environ.get(variables.ACCEPT, ""),
            "execution_parameters": entry is not None and "execution_parameters_fn" in entry.names,
            "task": os.environ.get("HF_TASK", ""),
            "chosen": dict(chosen),
        },
        environment=variables.for_script(
            entry.script if entry is not None and not entry.is_service else None, code, folder, os.environ
        ),
        facts={
            "container": [flavor.name],
            "model_folder": [near(str(folder))],
            "functions": [name for name in entries.ARGUMENTS if entry is not None and name in entry.names],
        },
        run_links={"model": folder} if fixed and not folder.is_relative_to(root) else {},
        fixed_paths=fixed,
        whole=root if root != code else None,
        elsewhere=outside(root, str(folder)),
    )


def _name(path: Path, root: Path, script: Path) -> str:
    if path.is_dir():
        return root.name
    return root.name if script.name == entries.DEFAULT else script.stem


def _called(entry: Entry | None) -> str:
    if entry is None:
        return "the container's defaults"
    if entry.is_service:
        return entry.script.stem
    if entry.has_handlers:
        return "input_handler, output_handler" if entries.HANDLERS[0] in entry.names else "handler"
    if "transform_fn" in entry.names:
        return "transform_fn"
    return ", ".join(name for name in ("input_fn", "predict_fn", "output_fn") if name in entry.names) or "model_fn"


def _flavor(entry: Entry | None, folder: Path, named: str) -> Flavor:
    if named:
        return Flavor(named, "the setting flavor names it")
    imports = imported(entry.tree) if entry is not None else {}
    handles = entry is not None and entry.has_handlers
    return flavors.choose(imports, handles, entry.script if entry is not None else None, folder, os.environ)


def _check(entry: Entry | None, flavor: Flavor) -> None:
    """Raise StartError for a missing function that the container has no default for."""
    if entry is None or entry.is_service or entry.has_handlers or entry.is_open:
        return
    missing = [name for name in NEEDED if name not in entry.names]
    if "transform_fn" in entry.names:
        missing = [name for name in missing if name == "model_fn"]
    if flavor.name == GENERIC and missing:
        line = min((node.lineno for node in functions(entry.tree.body).values()), default=0)
        fix = f"def {entries.FORMS[missing[0]]}, or name the container that has one: --flavor pytorch"
        problem = f"Please provide a {missing[0]} implementation."
        raise StartError(problem, file=str(entry.script), line=line, fix=fix)


# Paths of the platform


def _fixed_paths(entry: Entry | None, root: Path, folder: Path) -> tuple[FixedPath, ...]:
    """Texts of the scripts that begin with the platform's folder. Texts behind `__main__` do not count: they are for
    training."""
    if entry is None:
        return ()
    inside = os.path.relpath(folder, root) if folder.is_relative_to(root) else "model"
    inside = "" if inside == "." else inside
    return tuple(_in_scripts(entry, inside))


def _in_scripts(entry: Entry, inside: str) -> Iterator[FixedPath]:
    training = [
        range(node.lineno, (node.end_lineno or node.lineno) + 1)
        for node in entry.tree.body
        if entries.is_training(node)
    ]
    for script in sorted(entry.folder.glob("*.py"))[: entries.MOST_SCRIPTS]:
        for match, line in texts_beginning(script, FIXED):
            if script == entry.script and any(line in lines for lines in training):
                continue
            yield FixedPath(match.string, script.name, line, ROOT, inside)


def join(package: Package, models: Sequence[tuple[str, str, Package]]) -> Package:
    """The package among these models, each with its name and version. Raises StartError."""
    return pipeline.join(package, models) if "pipeline" in package.options else package


def arrange(package: Package, settings: Settings) -> Package:
    """The package, made again by the choices of panglot.toml. `detect` has used flags and variables already."""
    if "pipeline" in package.options:
        return package
    chosen = {name: str(getattr(settings, name)) for name in CHOSEN}
    if chosen == package.options["chosen"]:
        return package
    entry = entries.find(package.root, chosen["entry_point"])
    if entry is None:
        entry = entries.find(package.script, "") if package.script.is_file() else None
    anew = _package(entry, package.root, package.root, chosen)
    # Set by the path that the user gave, or outside of `_package`: they stay.
    same = ("name", "config", "worker_half", "archive", "unpacked", "arguments", "defaults")
    return dataclasses.replace(anew, **{name: getattr(package, name) for name in same})
