"""What a path is, decided by file names and syntax trees. Nothing of the package is ever run here."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

from franca.errors import StartError, near
from franca.settings import suggestion

DIALECTS = ("plain",)


@dataclass(frozen=True)
class Package:
    """A package that was recognised."""

    name: str
    folder: Path
    script: Path
    dialect: str
    entry: str
    reasons: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    config: Path | None = None
    arguments: tuple[str, ...] = ()
    """What the script finds in sys.argv."""

    def for_worker(self) -> dict[str, object]:
        """What a worker is told."""
        return {
            "name": self.name,
            "folder": str(self.folder),
            "script": str(self.script),
            "dialect": self.dialect,
            "arguments": list(self.arguments),
        }


def discover(path: Path, dialect: str = "") -> Package:
    """Recognise a package. Raises StartError when the path is missing, empty, ambiguous or not servable."""
    if dialect and dialect not in DIALECTS:
        raise StartError(
            f"there is no dialect '{dialect}'", fix=suggestion(dialect, DIALECTS) or f"use one of {', '.join(DIALECTS)}"
        )
    if not path.exists():
        near = [child.name for child in path.parent.iterdir()] if path.parent.is_dir() else []
        raise StartError(f"{path} does not exist", fix=suggestion(path.name, near))
    script = path.resolve() if path.is_file() else _script_in(path.resolve())
    if script.suffix != ".py":
        raise StartError("this is no Python script", file=str(path), fix="name a .py file or a folder that holds one")
    tree = parse(script)
    entry, reasons = plain_entry(tree, script)
    if not entry:
        raise StartError(
            "there is no predict in it",
            file=str(script),
            fix="define predict(request), or a class Model with predict(item) or predict_batch(items)",
        )
    config = script.parent / "franca.toml"
    return Package(
        name=script.parent.name if script.name == "model.py" else script.stem,
        folder=script.parent,
        script=script,
        dialect="plain",
        entry=entry,
        reasons=tuple(reasons),
        config=config if config.is_file() else None,
    )


def parse(script: Path) -> ast.Module:
    """The script's syntax tree. Raises StartError with file and line."""
    try:
        return ast.parse(script.read_bytes(), filename=str(script))
    except SyntaxError as error:
        raise StartError(f"syntax error: {error.msg}", file=str(script), line=error.lineno or 0) from None
    except ValueError as error:
        raise StartError(f"not readable as Python: {error}", file=str(script)) from None


def _script_in(folder: Path) -> Path:
    """The script of a folder: model.py, or the only one that has a predict."""
    if (folder / "model.py").is_file():
        return folder / "model.py"
    scripts = sorted(folder.glob("*.py"))
    if not scripts:
        raise StartError(
            "there is nothing to serve in this folder",
            file=str(folder),
            fix="put a model.py with predict(request) there; looked for model.py and any script with a predict",
        )
    candidates = [script for script in scripts if _has_entry(script)]
    if len(candidates) == 1:
        return candidates[0]
    if candidates:
        names = " and ".join(script.name for script in candidates)
        raise StartError(
            f"{names} could both be the script",
            file=str(folder),
            fix=f"name one: franca serve {near(str(candidates[0]))}",
        )
    if len(scripts) == 1:
        return scripts[0]
    raise StartError(
        f"none of its {len(scripts)} scripts has a predict",
        file=str(folder),
        fix="define predict(request) in model.py, or name the script",
    )


def _has_entry(script: Path) -> bool:
    try:
        return bool(plain_entry(parse(script), script, check=False)[0])
    except StartError:
        return False


def plain_entry(tree: ast.Module, script: Path, check: bool = True) -> tuple[str, list[str]]:
    """The entry point of a plain script and why it was taken; empty when there is none."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == "Model":
            methods = _functions(node.body)
            for name in ("predict_batch", "predict"):
                if name in methods:
                    if check:
                        _check_signature(methods[name], script, method=True)
                    return f"Model.{name}", [f"{script.name}:{node.lineno} defines class Model with {name}"]
            if node.bases:
                return "Model.predict", [f"{script.name}:{node.lineno} defines class Model, which inherits its predict"]
    functions = _functions(tree.body)
    for name in ("predict_batch", "predict"):
        if name in functions:
            if check:
                _check_signature(functions[name], script, method=False)
            return name, [f"{script.name}:{functions[name].lineno} defines {name}"]
    imported = _bound_elsewhere(tree)
    for name in ("Model", "predict_batch", "predict"):
        if name in imported:
            return name, [f"{script.name}:{imported[name]} brings in {name}"]
    return "", []


Function = ast.FunctionDef | ast.AsyncFunctionDef


def _functions(body: list[ast.stmt]) -> dict[str, Function]:
    return {node.name: node for node in body if isinstance(node, Function)}


def _bound_elsewhere(tree: ast.Module) -> dict[str, int]:
    """Names bound at the top level by import or assignment, with their line."""
    names = {}
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            names.update({alias.asname or alias.name: node.lineno for alias in node.names})
        elif isinstance(node, ast.Assign):
            names.update({target.id: node.lineno for target in node.targets if isinstance(target, ast.Name)})
    return names


def _check_signature(node: Function, script: Path, *, method: bool) -> None:
    """Refuse what cannot be called with exactly one argument."""
    arguments = node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    static = any(isinstance(item, ast.Name) and item.id == "staticmethod" for item in node.decorator_list)
    taken = 1 if method and not static else 0
    most = len(positional) - taken if arguments.vararg is None else 99
    least = len(positional) - taken - len(arguments.defaults)
    keywords = sum(default is None for default in arguments.kw_defaults)
    if least <= 1 <= most and not keywords:
        return
    if node.decorator_list and not static:
        return
    given = ", ".join(argument.arg for argument in positional)
    wanted = "self, item" if taken else "request"
    raise StartError(
        f"{node.name}({given}) must take exactly one argument",
        file=str(script),
        line=node.lineno,
        fix=f"def {node.name}({wanted})",
    )
