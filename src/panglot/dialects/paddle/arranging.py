"""A package completed by the command line: the arguments of its script, and its entry."""

from __future__ import annotations

import ast
import dataclasses
import os
import re
from pathlib import Path

from panglot.dialects.paddle import driver as drivers
from panglot.dialects.paddle import parser
from panglot.dialects.paddle.settings import Settings
from panglot.dialects.paddle.shape import ENGINE, arguments_of, by_driver, by_steps, find_engine, not_drivable
from panglot.errors import StartError, near
from panglot.packages.exported_programs import is_program
from panglot.packages.package import Package, outside
from panglot.packages.source import functions, parse
from panglot.settings import suggestion

MODEL_FILES = ("*.pdmodel", "*.json", "*.pdiparams", "__model__")
YES = ("true", "t", "1")
WHOLE = re.compile(r"\bvars\(|\.__dict__")
"""Signs of a script that passes on all of its arguments: it may read any of them."""
MOST_FILES = 500


def arrange(package: Package, settings: Settings) -> Package:
    """The package with its entry and its script's arguments settled. Raises StartError."""
    tree = parse(package.script)
    arguments = arguments_of(package.script, tree)
    script = near(str(package.script))
    if arguments and "parse_known_args" not in ast.dump(tree):
        parser.check(arguments, package.arguments, script)
    if settings.entry:
        package = _with_entry(package, tree, arguments, settings.entry)
    read = [argument for argument in arguments if _is_read(argument, package.script, tree)]
    given, notes = _placed(package, arguments, read)
    _check_model(package, arguments, given, read)
    problems = package.problems
    typed = parser.values(arguments, package.arguments)
    inputs = [field["name"] for field in package.options["inputs"] if field["name"] in typed]
    if settings.allow_pickle:
        problems += ("--allow-pickle: anybody who may send requests can run code here",)
    if package.options["shape"] == "engine" and parser.values(arguments, given).get("benchmark", "").lower() in YES:
        driver = package.options["driver"] or "the driver"
        problems += (f"--benchmark has no effect: {driver} is not called (--entry {driver} calls it for each request)",)
    return dataclasses.replace(
        package,
        arguments=tuple(given),
        options={**package.options, "given": inputs},
        facts={**package.facts, **({"given": [" ".join(given)]} if given else {})},
        reasons=(*package.reasons, *notes),
        problems=problems,
        elsewhere=outside(package.root, *(word.rpartition("=")[2] for word in given)),
    )


def _with_entry(package: Package, tree: ast.Module, arguments: tuple[parser.Argument, ...], entry: str) -> Package:
    engine = find_engine(package.script, tree)
    methods = functions(engine[0].body) if engine else {}
    known = functions(tree.body)
    if entry == ENGINE:
        reason = not_drivable(methods)
        if reason:
            raise StartError(f"--entry {ENGINE}: {reason}", file=str(package.script), fix="leave --entry out")
        driver = drivers.find(tree)
        chosen = by_steps(package.script, tree, driver, methods, arguments)
    elif entry in known:
        chosen = by_driver(package.script, tree, drivers.read(known[entry]), methods, arguments, "--entry names it")
    else:
        fix = suggestion(entry, [ENGINE, *known]) or f"say {ENGINE} or a function of the script"
        raise StartError(f"--entry {entry}: there is none in it", file=str(package.script), fix=fix)
    reasons = (package.reasons[0], f"--entry {entry}")
    return dataclasses.replace(package, entry=entry, options={**package.options, **chosen}, reasons=reasons)


def _is_read(argument: parser.Argument, script: Path, tree: ast.Module) -> bool:
    """Whether the script, or a module beside it, reads an argument of its parser, as far as their text tells."""
    engine = find_engine(script, tree)
    own = [script, *([engine[1]] if engine is not None else [])]
    if any(WHOLE.search(file.read_text(encoding="utf-8", errors="replace")) for file in own):
        return True
    use = re.compile(rf"""\.{argument.name}\b|["']{argument.name}["']""")
    files = sorted({*own, *script.parent.glob("*.py"), *script.parent.glob("*/*.py")})[:MOST_FILES]
    return any(use.search(file.read_text(encoding="utf-8", errors="replace")) for file in files if file.is_file())


def _placed(
    package: Package, arguments: tuple[parser.Argument, ...], read: list[parser.Argument]
) -> tuple[list[str], list[str]]:
    """The arguments with full paths, and with a default or the model's folder added where one can be found; and notes.

    The script does not run in the folder where the command was typed: relative paths mean something else there.
    """
    given, notes = list(package.arguments), []
    for at, flag, value in list(parser.words(given)):
        argument = parser.find(arguments, flag)
        if argument is None or not argument.is_path:
            continue
        if value is not None:
            given[at] = f"{flag}={_absolute(value, package)}"
        for index in range(at + 1, len(given) if value is None else 0):
            if given[index].startswith("-"):
                break
            given[index] = _absolute(given[index], package)
    typed = parser.values(arguments, given)
    for argument in arguments:
        if argument.name in typed or not argument.flags:
            continue
        flag, default = argument.flags[-1], argument.value
        if argument.is_path and isinstance(default, str) and not (package.folder / default).exists():
            if _is_here(default, package):
                given += [flag, os.path.abspath(default)]
                notes.append(f"{flag} is not given: its default {default} is in this folder")
        elif argument.is_model_folder and argument.default == "None" and argument in read:
            folders = _models_in(package.folder)
            if len(folders) == 1:
                given += [flag, str(folders[0])]
                notes.append(f"{flag} is not given: the exported model in {near(str(folders[0]))} is taken")
    return given, notes


def _absolute(text: str, package: Package) -> str:
    """The full path for a path that was typed, or for several with commas between them; other texts unchanged."""
    parts = text.split(",")
    return ",".join(map(os.path.abspath, parts)) if all(_is_here(part, package) for part in parts) else text


def _is_here(path: str, package: Package) -> bool:
    """Whether a relative path exists in the current folder, and the script runs in another one."""
    return bool(path) and not os.path.isabs(path) and os.path.exists(path) and Path.cwd() != package.folder


def _models_in(folder: Path) -> list[Path]:
    """The folders with an exported model: the package's folder, and folders one level below it."""
    folders = [folder, *sorted(child for child in folder.iterdir() if child.is_dir() and child.name[0] != ".")]
    return [path for path in folders if any(path.glob("*.pdiparams")) or any(map(is_program, path.glob("*.*")))]


def _holds_model(folder: Path) -> bool:
    return any(True for form in MODEL_FILES for start in ("", "*/") for _ in folder.glob(start + form))


def _check_model(
    package: Package, arguments: tuple[parser.Argument, ...], given: list[str], read: list[parser.Argument]
) -> None:
    """Raise StartError for an argument that names the model's folder, where there is no such folder, or no model in it.

    An argument that the script never reads is not checked, unless it is given.
    """
    typed = parser.values(arguments, given)
    for argument in arguments:
        if not argument.is_model_folder or not argument.flags or not (argument in read or argument.name in typed):
            continue
        text = typed.get(argument.name) or argument.value
        if not isinstance(text, str) or not text:
            if argument.default == "None":
                raise _no_model(package, argument.flags[-1])
            continue
        folder = package.folder / text
        if not folder.exists():
            raise StartError(f"{argument.flags[-1]} {text} does not exist", file=str(package.script))
        if folder.is_dir() and not _holds_model(folder):
            raise StartError(
                f"there is no exported model in {near(str(folder))}: neither *.pdmodel nor *.json",
                file=str(package.script), fix="export it into this folder first",
            )  # fmt: skip


def _no_model(package: Package, flag: str) -> StartError:
    """The error where the model's folder is not given: there is no such folder, or there are several."""
    folders = [near(str(folder)) for folder in _models_in(package.folder)]
    if folders:
        problem = f"{flag} is not given, and {len(folders)} folders hold an exported model: {', '.join(folders)}"
        return StartError(problem, file=str(package.script), fix=f"add to the command: -- {flag} {folders[0]}")
    return StartError(
        f"{flag} is not given, and no folder of the package holds an exported model",
        file=str(package.script),
        fix=f"export the model, then add to the command: -- {flag} FOLDER",
    )
