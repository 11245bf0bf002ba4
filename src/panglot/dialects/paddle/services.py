"""Services of Paddle Serving (`web_service.py`). They are recognised only to say why they are not served."""

from __future__ import annotations

import ast
from pathlib import Path

from panglot.errors import StartError, near
from panglot.packages.source import classes, functions, imported, parse

SCRIPT = "web_service.py"
SERVICE = "WebService"
MODULES = ("paddle_serving_server", "paddle_serving_server_gpu")
OTHERS = ("model.py", "model_service.py", "customize_service.py", "eval.py")
"""Scripts of other dialects that a folder may hold as well."""
INFERENCE = (
    "infer.py",
    "inference_python/infer.py",
    "../inference_python/infer.py",
    "../infer.py",
    "../python/infer.py",
)
"""Paths, from the service, at which the same project may have its script with an engine."""


def refuse(path: Path) -> None:
    """Raise StartError where a path is a service of Paddle Serving, and nothing else."""
    script = path if path.is_file() else path / SCRIPT
    if script.suffix != ".py" or not script.is_file() or SERVICE.encode() not in script.read_bytes():
        return
    if path.is_dir() and any((path / name).is_file() for name in OTHERS):
        return
    tree = parse(script)
    service = _service(tree)
    if service is None or "predict" in functions(tree.body):
        return
    raise StartError(
        f"{service.name} is a service of Paddle Serving, which is not run here: Serving itself runs the step between "
        "preprocess and postprocess of its Ops, from a config.yml and a model that was converted for it",
        file=str(script),
        line=service.lineno,
        fix=_instead(script),
    )


def _service(tree: ast.Module) -> ast.ClassDef | None:
    if not any(name.partition(".")[0] in MODULES for name in imported(tree)):
        return None
    return next((node for node in classes(tree) if any(SERVICE in ast.unparse(base) for base in node.bases)), None)


def _instead(script: Path) -> str:
    same = "which answers POST /NAME/prediction as Serving does"
    for name in INFERENCE:
        other = script.parent / name
        if other.is_file() and b"InferenceEngine" in other.read_bytes():
            return (
                f"serve the project's own script for the same model, {same}: panglot serve {near(str(other.resolve()))}"
            )
    return f"serve an infer.py with class InferenceEngine, {same}; panglot new paddle DIR writes one to begin with"
