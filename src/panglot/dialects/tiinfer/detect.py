"""The tiinfer dialect: `model_service.py` with a `tiinfer.Model` or with `tiinfer.append_worker`."""

from __future__ import annotations

import ast
import os
from collections.abc import Mapping
from pathlib import Path

from panglot.dialects.tiinfer import mosec_options
from panglot.errors import StartError
from panglot.packages.package import Package, config_beside, outside
from panglot.packages.source import Function, classes, functions, imported, parse

SCRIPT = "model_service.py"
LOOKS_FOR = f"{SCRIPT} that imports tiinfer"
NAME = "m"
"""The platform's name for every model, in its paths."""

MOST_ITEMS = 1024
"""How many items a call may hold at most; the script or TI_INFERENCE_MAX_BATCH_SIZE says how many it does hold."""

COUNTS = {
    "TI_PREPROCESS_NUMS": 0,
    "TI_INFERENCE_NUMS": 1,
    "TI_POSTPROCESS_NUMS": 0,
    "TI_INFERENCE_MAX_BATCH_SIZE": 1,
}
"""The platform's counts with the least each may be, which is also its default."""


def detect(path: Path) -> Package | None:
    """The package at a path. Raises StartError for variables that cannot work."""
    script = path / SCRIPT if path.is_dir() else path
    if not script.is_file() or script.suffix != ".py":
        return None
    tree = parse(script)
    line = _uses_tiinfer(script, tree)
    if not line:
        return None
    entry, reason = _entry(script, tree)
    counts, problems = read_counts(os.environ)
    chosen = mosec_options.read_variables(os.environ)
    model_dir = os.environ.get("TI_MODEL_DIR") or str(script.parent)
    return Package(
        name=script.parent.name if script.name == SCRIPT else script.stem,
        folder=script.parent,
        script=script,
        dialect="tiinfer",
        entry=entry,
        reasons=(f"{script.name}:{line} imports tiinfer", reason, *(f"{name}={n}" for name, n in counts.items())),
        problems=(*problems, *split_problems(counts), *_batch_problems(script, tree, counts), *chosen.notes),
        config=config_beside(script),
        defaults={
            "strict_results": True,
            "queue": 1024,
            "max_batch": MOST_ITEMS,
            "worker_net": "guard",
            **chosen.settings,
        },
        options={
            "model_dir": model_dir,
            "algorithm_name": NAME,
            "namespace": chosen.namespace or mosec_options.NAMESPACE,
        },
        environment={**_variables(os.environ), "TI_MODEL_DIR": model_dir},
        elsewhere=outside(script.parent, model_dir),
    )


def _variables(environ: Mapping[str, str]) -> dict[str, str]:
    """The platform's variables: the script and the platform's own modules read them."""
    return {name: value for name, value in environ.items() if name.startswith("TI_")}


def _uses_tiinfer(script: Path, tree: ast.Module) -> int:
    """The line that imports tiinfer, or the module beside the script that does; 0 when none does."""
    names = imported(tree)
    if "tiinfer" in names:
        return names["tiinfer"]
    for name, line in names.items():
        beside = script.parent / f"{name}.py"
        if beside.is_file() and "tiinfer" in imported(parse(beside)):
            return line
    return 0


def _entry(script: Path, tree: ast.Module) -> tuple[str, str]:
    """The class or function that is served, as far as the text tells, and the reason with its line."""
    for model in sorted(_models(tree), key=lambda node: node.name):
        return model.name, f"{script.name}:{model.lineno} defines class {model.name}(tiinfer.Model)"
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _last_name(node.func) == "append_worker":
            return "append_worker", f"{script.name}:{node.lineno} adds a worker with append_worker"
    return "tiinfer.Model", "which class is served shows when the script is imported"


def _models(tree: ast.Module) -> list[ast.ClassDef]:
    """The classes that inherit from tiinfer.Model, by its name or through one another."""
    names = {"Model"}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module in ("tiinfer", "tiinfer.model"):
            names |= {alias.asname for alias in node.names if alias.name == "Model" and alias.asname}
    models: list[ast.ClassDef] = []
    for node in classes(tree):
        if any(_last_name(base) in names for base in node.bases):
            models.append(node)
            names.add(node.name)
    return models


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


# The platform's counts


def read_counts(environ: Mapping[str, str]) -> tuple[dict[str, int], list[str]]:
    """The counts that are set, and a warning for each one that is no number. Raises StartError for one too small."""
    counts, problems = {}, []
    for name, least in COUNTS.items():
        text = environ.get(name, "").strip()
        if not text:
            continue
        try:
            counts[name] = int(text)
        except ValueError:
            problems.append(f"{name}={text} is no whole number; {least} is used, as on the platform")
            continue
        if counts[name] < least:
            raise StartError(f"{name}={text}: must be at least {least}", fix=f"unset it, or say {name}={least or 1}")
    return counts, problems


def split_problems(counts: Mapping[str, int]) -> list[str]:
    """A warning where only one of the two further steps has processes: the other step runs beside inference."""
    before, after = counts.get("TI_PREPROCESS_NUMS", 0), counts.get("TI_POSTPROCESS_NUMS", 0)
    if not before and not after:
        return []
    problems = []
    if not before:
        problems.append("TI_PREPROCESS_NUMS is 0, TI_POSTPROCESS_NUMS is not: preprocess runs beside inference")
    if not after:
        problems.append("TI_POSTPROCESS_NUMS is 0, TI_PREPROCESS_NUMS is not: postprocess runs beside inference")
    return problems


def _batch_problems(script: Path, tree: ast.Module, counts: Mapping[str, int]) -> list[str]:
    """A warning when batches go to a script that was written for one dict at a time."""
    if counts.get("TI_INFERENCE_MAX_BATCH_SIZE", 1) < 2:
        return []
    split = counts.get("TI_PREPROCESS_NUMS", 0) or counts.get("TI_POSTPROCESS_NUMS", 0)
    for model in _models(tree):
        methods = functions(model.body)
        first = next(
            (methods[name] for name in (("predict",) if split else ("preprocess", "predict")) if name in methods), None
        )
        if first is not None and takes_a_dict(first):
            return [
                f"TI_INFERENCE_MAX_BATCH_SIZE hands lists to {script.name}:{first.lineno} {first.name}, "
                "which seems to expect a dict"
            ]
    return []


def takes_a_dict(method: Function) -> bool:
    """Whether a method treats its request as a dict: `request["key"]`, `"key" in request`, `request.get("key")`."""
    arguments = [*method.args.posonlyargs, *method.args.args]
    if len(arguments) < 2:
        return False
    return any(_uses_as_dict(node, arguments[1].arg) for node in ast.walk(method))


def _uses_as_dict(node: ast.AST, name: str) -> bool:
    def is_it(inner: ast.expr) -> bool:
        return isinstance(inner, ast.Name) and inner.id == name

    if isinstance(node, ast.Subscript):
        return is_it(node.value) and _is_text(node.slice)
    if isinstance(node, ast.Compare):
        return _is_text(node.left) and any(is_it(other) for other in node.comparators)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return is_it(node.func.value) and node.func.attr in ("get", "pop", "keys", "items", "values")
    return False


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)
