"""Inference pipelines: a chain of models of the server, in the form of `Containers` of the platform's CreateModel."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from panglot.dialects.sagemaker import variables
from panglot.dialects.sagemaker.flavor import GENERIC
from panglot.errors import StartError
from panglot.packages.package import Package
from panglot.settings import suggestion
from panglot.settings.counts import exactly

FILE = "pipeline.json"
DIALECT = "sagemaker"
MOST = 15
"""Containers of a pipeline, as on the platform."""
FORM = '{"Containers": [{"ContainerHostname": "MODEL"}, ...]}'


def package(path: Path) -> Package | None:
    """The package of a pipeline; None for other files. Raises StartError for one that cannot work."""
    file = path / FILE if path.is_dir() else path
    if file.name != FILE or not file.is_file():
        return None
    containers = [_container(number, given, file) for number, given in enumerate(_containers(file), 1)]
    return Package(
        name=file.parent.name,
        folder=file.parent,
        script=file,
        dialect=DIALECT,
        entry="pipeline",
        reasons=(f"{FILE} has {len(containers)} containers",),
        defaults={"workers": exactly(1), **variables.defaults({})},
        options={
            "flavor": GENERIC,
            "model_dir": str(file.parent),
            "functions": [],
            "execution_parameters": False,
            "pipeline": containers,
        },
        facts={"containers": [container["model"] for container in containers]},
        whole=file.parent,
    )


def _containers(file: Path) -> list[Any]:
    try:
        described = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise StartError(f"it is no JSON: {error}", file=str(file), fix=FORM) from None
    containers = described.get("Containers") if isinstance(described, dict) else None
    if not isinstance(containers, list) or not 1 < len(containers) <= MOST:
        raise StartError(f"Containers must be a list of 2 to {MOST}", file=str(file), fix=FORM)
    return containers


def _container(number: int, given: Any, file: Path) -> dict[str, str]:
    about: Mapping[str, Any] = given if isinstance(given, dict) else {}
    archive = str(about.get("ModelDataUrl") or "").rpartition("/")[2]
    model = str(about.get("ContainerHostname") or archive.removesuffix(".tar.gz"))
    environment = about.get("Environment") or {}
    if not model or not isinstance(environment, dict):
        problem = f"container {number} names no model: its ContainerHostname, or the archive of its ModelDataUrl, does"
        raise StartError(problem, file=str(file), fix=FORM)
    return {"model": model, "accept": str(environment.get(variables.ACCEPT) or "")}


def join(package: Package, models: Sequence[tuple[str, str, Package]]) -> Package:
    """The package, unchanged. Raises StartError where a model is not served, or leads back to the package."""
    chains = {name: _models(other) for name, _, other in models}
    # Found by identity: on the server, the package may have another name than its folder.
    own = next((name for name, _, other in models if other is package), package.name)
    for number, model in enumerate(_models(package), 1):
        if model not in chains:
            fix = suggestion(model, chains) or "serve all of them: --models DIR"
            problem = f"container {number}: this server has no model '{model}'"
            raise StartError(problem, file=str(package.script), fix=fix)
        reached, names = {model}, [model]
        while names:
            further = set(chains.get(names.pop(), ())) - reached
            reached |= further
            names += further
        if own in reached:
            raise StartError(f"container {number} ({model}) leads back to '{own}' itself", file=str(package.script))
    return package


def _models(package: Package) -> list[str]:
    """The models that a pipeline calls. Packages of other dialects may have an option of this name, for its own use."""
    containers = package.options.get("pipeline", ()) if package.dialect == DIALECT else ()
    return [container["model"] for container in containers]
