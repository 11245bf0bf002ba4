"""The plain dialect: a script with a `predict`."""

from __future__ import annotations

import ast
from pathlib import Path

from panglot.dialects import archive_endings, folders_of_packages, looks_for
from panglot.dialects.plain import openai_functions
from panglot.dialects.plain.request_use import uses_requests
from panglot.dialects.plain.routes import PREDICT, Route
from panglot.dialects.plain.routes import routes as routes_in
from panglot.errors import StartError, near
from panglot.packages.package import Package, config_beside
from panglot.packages.source import Function, bound_elsewhere, functions, parse

LOOKS_FOR = "model.py or any script with a predict"
FALLBACK = True
"""Tried last: any script may be plain."""


def detect(path: Path) -> Package | None:
    """The package at a path. Raises StartError for other files, and never returns None: this dialect is tried last."""
    script = path if path.is_file() else _script_in(path)
    if script.suffix != ".py":
        raise StartError("this is no Python script", file=str(path), fix="name a .py file or a folder that holds one")
    tree = parse(script)
    entry, reasons = plain_entry(tree, script)
    config = config_beside(script)
    routes = find_routes(tree, script, config)
    lines = openai_functions.found_in(tree.body, methods_of_model(tree))
    lines = {name: line for name, line in lines.items() if name not in {route.function for route in routes}}
    if not entry and not routes and not lines:
        raise StartError(
            "there is no predict in it",
            file=str(script),
            fix="define predict(request), or a class Model with predict(item) or predict_batch(items); "
            "or chat(messages), or embed(texts)",
        )
    if entry and any(route.path == PREDICT and "POST" in route.methods for route in routes):
        raise StartError(f"{PREDICT} is the route of predict", file=str(script), fix="choose another path")
    reasons += [route.reason for route in routes]
    reasons += [f"{script.name}:{line} defines {name}, which OpenAI's clients can call" for name, line in lines.items()]
    return Package(
        name=script.parent.name if script.name == "model.py" else script.stem,
        folder=script.parent,
        script=script,
        dialect="plain",
        entry=entry or next(iter([*(route.function for route in routes), *lines])),
        takes=_beside(tree, entry, "preprocess"),
        gives=_beside(tree, entry, "postprocess"),
        reasons=tuple(reasons),
        config=config,
        options={
            "frames": takes_frames(tree, entry),
            "predict": bool(entry),
            "uses_request": uses_requests(tree, script),
            "routes": {route.key: route.for_worker() for route in routes},
            **dict.fromkeys(lines, True),
            "pictures": "chat" in lines and names_pictures(tree),
        },
    )


def _beside(tree: ast.Module, entry: str, name: str) -> str:
    """The function of this name beside the entry, with its class; empty where there is none."""
    owner = entry.rpartition(".")[0]
    body = methods_of_model(tree) if owner else tree.body
    return f"{owner}.{name}".lstrip(".") if entry and name in functions(body) else ""


def find_routes(tree: ast.Module, script: Path, config: Path | None) -> list[Route]:
    """The script's own routes. Their functions may be methods of its Model too. Raises StartError."""
    return routes_in(tree, [*methods_of_model(tree), *tree.body], script, config)


def names_pictures(tree: ast.Module) -> bool:
    """Whether a script looks for pictures in messages: they are parts of the type `image_url`."""
    return any(isinstance(node, ast.Constant) and node.value == "image_url" for node in ast.walk(tree))


def methods_of_model(tree: ast.Module) -> list[ast.stmt]:
    models = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Model"]
    return models[0].body if models else []


def _of_others(folder: Path, inside: list[str]) -> StartError:
    """The error for a folder that is no package, and whose folders of these names are."""
    here, first = near(str(folder)), near(str(folder / inside[0]))
    if len(inside) == 1:
        problem, fix = (
            f"there is no package in this folder, but one in its folder {inside[0]}",
            f"panglot serve {first}",
        )
    else:
        names = ", ".join(inside[:5]) + (" and others" if len(inside) > 5 else "")
        problem = f"this folder is no package itself; its folders are: {names}"
        fix = f"panglot serve --models {here} serves all of them, panglot serve {first} one"
    return StartError(problem, file=str(folder), fix=fix)


def _script_in(folder: Path) -> Path:
    """The script of a folder: model.py, or the only one that has a predict."""
    if (folder / "model.py").is_file():
        return folder / "model.py"
    scripts = sorted(folder.glob("*.py"))
    if not scripts:
        archive = next((file for file in sorted(folder.iterdir()) if file.name.endswith(archive_endings())), None)
        if archive is not None:
            problem = f"there is no script in this folder, but an archive, {archive.name}"
            raise StartError(problem, file=str(folder), fix=f"panglot serve {near(str(archive))}")
        if inside := folders_of_packages(folder):
            raise _of_others(folder, inside)
        raise StartError(
            f"there is nothing to serve in this folder. What is looked for:\n{looks_for()}\n",
            file=str(folder),
            fix="panglot new text DIR writes a package to start from",
        )
    candidates = [script for script in scripts if _has_entry(script)] or [
        script for script in scripts if _has_routes(script)
    ]
    if len(candidates) == 1:
        return candidates[0]
    if candidates:
        names = " and ".join(script.name for script in candidates)
        raise StartError(
            f"{names} could both be the script",
            file=str(folder),
            fix=f"name one: panglot serve {near(str(candidates[0]))}",
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


def _has_routes(script: Path) -> bool:
    try:
        tree = parse(script)
        lines = openai_functions.found_in(tree.body, methods_of_model(tree))
        return bool(find_routes(tree, script, None)) or bool(lines)
    except StartError:
        return False


def plain_entry(tree: ast.Module, script: Path, check: bool = True) -> tuple[str, list[str]]:
    """The entry point of a plain script and the reason for it; empty where there is none."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == "Model":
            methods = functions(node.body)
            for name in ("predict_batch", "predict"):
                if name in methods:
                    if check:
                        _check_signature(methods[name], script, method=True)
                    return f"Model.{name}", [f"{script.name}:{node.lineno} defines class Model with {name}"]
            if node.bases:
                return "Model.predict", [f"{script.name}:{node.lineno} defines class Model, which inherits its predict"]
    defined = functions(tree.body)
    for name in ("predict_batch", "predict"):
        if name in defined:
            if check:
                _check_signature(defined[name], script, method=False)
            return name, [f"{script.name}:{defined[name].lineno} defines {name}"]
    imported = bound_elsewhere(tree)
    for name in ("Model", "predict_batch", "predict"):
        if name in imported:
            return name, [f"{script.name}:{imported[name]} brings in {name}"]
    return "", []


def takes_frames(tree: ast.Module, entry: str) -> bool:
    """Whether a script takes videos: it defines `predict_frame` and `predict`, and both are ordinary functions."""
    bodies = [node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Model"]
    defined = functions(bodies[0] if entry.startswith("Model.") and bodies else tree.body)
    both = [defined.get(name) for name in ("predict", "predict_frame")]
    return entry.endswith("predict") and all(isinstance(function, ast.FunctionDef) for function in both)


def _check_signature(node: Function, script: Path, *, method: bool) -> None:
    """Raise StartError for a function that cannot be called with one argument. With hints it may have several."""
    # The worker takes fields of a request by the names and hints of the arguments.
    arguments = node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    static = any(isinstance(item, ast.Name) and item.id == "staticmethod" for item in node.decorator_list)
    taken = 1 if method and not static else 0
    most = len(positional) - taken if arguments.vararg is None else 99
    least = len(positional) - taken - len(arguments.defaults)
    keywords = sum(default is None for default in arguments.kw_defaults)
    if least <= 1 <= most and not keywords:
        return
    if any(argument.annotation for argument in (*positional[taken:], *arguments.kwonlyargs)):
        return
    if node.decorator_list and not static:
        return
    given = ", ".join(argument.arg for argument in positional)
    wanted = "self, item" if taken else "request"
    raise StartError(
        f"{node.name}({given}) must take exactly one argument",
        file=str(script),
        line=node.lineno,
        fix=f"def {node.name}({wanted}), or give every argument a hint, to take it by name",
    )
