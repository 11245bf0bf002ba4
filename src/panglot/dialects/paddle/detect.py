"""The Paddle dialect: a script of the TIPC chain, `infer.py` with a class InferenceEngine."""

from __future__ import annotations

import ast
import os
import re
from pathlib import Path
from typing import Any

from panglot.dialects.paddle import services
from panglot.dialects.paddle.arranging import arrange
from panglot.dialects.paddle.pipeline import operations
from panglot.dialects.paddle.running_folder import running_folder
from panglot.dialects.paddle.shape import ENGINE, GET_ARGUMENTS, arguments_of, choose, find_engine
from panglot.errors import StartError, near
from panglot.packages.package import Package, config_beside
from panglot.packages.source import functions, imported, parse
from panglot_worker.files.package_files import content_if_any

__all__ = ["LOOKS_FOR", "arrange", "detect"]

SCRIPT = "infer.py"
LOOKS_FOR = f"{SCRIPT}, or a script, with class {ENGINE}"
UNPICKLING = re.compile(rb"pickle|joblib|\bdill\b|(torch|paddle)\.load\b|shelve")
MOST_FILES = 500
USUAL_FOLDERS = ("deploy/inference_python", "deploy/python", "deploy", "inference_python", "tools")


def detect(path: Path) -> Package | None:
    """The package at a path. Raises StartError when a folder holds several such scripts, or a service of Serving."""
    script = path if path.is_file() else _script_in(path)
    tree = parse(script) if script is not None and script.suffix == ".py" else None
    located = find_engine(script, tree) if script is not None and tree is not None else None
    if script is None or tree is None or located is None:
        services.refuse(path)
        return None
    engine, where, why = located
    methods = functions(engine.body)
    arguments = arguments_of(script, tree)
    chosen = choose(script, tree, methods, arguments)
    folder, folder_note = running_folder(path, script, tree)
    pointed_at = path if path.is_dir() else script.parent
    return Package(
        name=pointed_at.name if path.is_dir() or script.name == SCRIPT else script.stem,
        folder=folder,
        script=script,
        dialect="paddle",
        entry=chosen["entry"],
        reasons=(
            f"{where.name}:{engine.lineno} defines class {ENGINE} {why}",
            chosen["why"],
            *_alone(chosen),
            *([folder_note] if folder_note else ()),
        ),
        config=config_beside(script) or config_beside(pointed_at / SCRIPT),
        options={
            **chosen,
            "get_arguments": next((name for name in GET_ARGUMENTS if name in _bound(tree)), ""),
            "bgr": "cv2" in imported(tree),
            "unpickles": _unpickles(script.parent, pointed_at),
            "operations": list(operations(script, pointed_at)),
            "folder_note": folder_note,
        },
        environment={} if "OMP_NUM_THREADS" in os.environ else {"OMP_NUM_THREADS": "1"},
        facts={"argument": [argument.shown() for argument in arguments]},
    )


def _alone(chosen: dict[str, Any]) -> list[str]:
    return [f"requests are not batched: {chosen['single']}"] if chosen.get("single") else []


def _script_in(folder: Path) -> Path | None:
    """The script of a folder: its infer.py, or the only script with an engine, here or where projects often have it."""
    if ENGINE.encode() in content_if_any(folder / SCRIPT):
        return folder / SCRIPT
    for candidate in (folder, *(folder / name for name in USUAL_FOLDERS)):
        scripts = [script for script in sorted(candidate.glob("*.py")) if _has_engine(script)]
        usual = [script for script in scripts if script.name == SCRIPT]
        if len(usual or scripts) > 1:
            names = " and ".join(script.name for script in scripts)
            fix = f"name one: panglot serve {near(str(scripts[0]))}"
            raise StartError(f"{names} both define class {ENGINE}", file=str(candidate), fix=fix)
        if scripts:
            return (usual or scripts)[0]
    return None


def _has_engine(script: Path) -> bool:
    try:
        return ENGINE.encode() in content_if_any(script) and find_engine(script, parse(script)) is not None
    except (StartError, OSError):
        return False


def _unpickles(*folders: Path) -> bool:
    """Whether the script, or a module that it may import, unpickles anything, as far as their text tells."""
    files = {file for folder in folders for form in ("*.py", "*/*.py") for file in folder.glob(form)}
    return any(UNPICKLING.search(content_if_any(file)) for file in sorted(files)[:MOST_FILES])


def _bound(tree: ast.Module) -> set[str]:
    names = set(functions(tree.body))
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            names |= {alias.asname or alias.name for alias in node.names}
    return names
