"""The scoring script of a path, and what its text says. The script does not run."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from panglot.dialects.azureml import deployment as deployments
from panglot.dialects.azureml.deployment import Deployment
from panglot.errors import StartError, near
from panglot.packages.source import Function, bound_elsewhere, functions, parse
from panglot_worker.files.package_files import content_if_any

NAMES = ("score.py", "main.py", "scoring.py")
FOLDERS = ("", "src", "code", "onlinescoring", "scoring", "online")
"""The folders in which repositories have their script, from the folder that is served."""
WORDS = re.compile(rb"AZUREML_MODEL_DIR|inference_schema|rawhttp|\bazureml")
SCORING = re.compile(r"scor(e|ing).*\.py", re.IGNORECASE)
BATCH_DRIVER = "batch_driver"
HEADERS = "request_headers"


@dataclass(frozen=True)
class Entry:
    """The scoring script of a package."""

    script: Path
    folder: Path
    """The folder of the code, which modules are imported from."""
    root: Path
    """The folder that has all of the package."""
    tree: ast.Module
    reason: str
    deployment: Deployment | None = None

    @property
    def run(self) -> Function | None:
        return functions(self.tree.body).get("run")

    @property
    def is_raw(self) -> bool:
        """Whether anything in the script uses `@rawhttp`."""
        return any("rawhttp" in _decorators(node) for node in ast.walk(self.tree) if isinstance(node, Function))

    @property
    def is_decorated(self) -> bool:
        """Whether `run` is decorated by inference_schema."""
        return self.run is not None and bool({"input_schema", "output_schema"} & _decorators(self.run))


def find(path: Path, named: str) -> Entry | None:
    """The script at a path; `named` is its name by a setting or a variable.

    Raises StartError for a script that cannot be served, such as a script of a batch endpoint.
    """
    if path.is_file():
        return _file(path)
    if named:
        script = path / named
        if script.is_file():
            return _entry(script, path, path, f"{named} is named as the entry script", None, certain=True)
    described = _described(path)
    if described is not None:
        return described
    for folder in (path / name for name in FOLDERS):
        entry = _in_folder(folder, path) if folder.is_dir() else None
        if entry is not None:
            return entry
    # Only to refuse it, by a sentence that tells why: `_entry` raises.
    for driver in sorted(path.glob(f"{BATCH_DRIVER}*.py")):
        _entry(driver, path, path)
    return None


def _file(path: Path) -> Entry | None:
    if path.suffix in deployments.SUFFIXES:
        deployment = deployments.read(path)
        return _of_deployment(deployment, path.parent) if deployment is not None else None
    if path.suffix != ".py":
        return None
    entry = _entry(path, path.parent, path.parent)
    if entry is None:
        return None
    for folder in (path.parent, path.parent.parent):
        for deployment in deployments.in_folder(folder):
            if deployment.script == path:
                return _of_deployment(deployment, folder)
    return entry


def _described(folder: Path) -> Entry | None:
    """The script that the folder's deployment files name. Raises StartError where they name several."""
    known = [deployment for deployment in deployments.in_folder(folder) if deployment.script.is_file()]
    scripts = {deployment.script for deployment in known}
    if len(scripts) > 1:
        names = " and ".join(deployment.file.name for deployment in known)
        problem = f"{names} deploy different scripts"
        raise StartError(problem, file=str(folder), fix=f"name one: panglot serve {near(str(known[0].file))}")
    return _of_deployment(known[0], folder) if known else None


def _of_deployment(deployment: Deployment, folder: Path) -> Entry | None:
    if deployment.is_batch:
        raise batch_refusal(deployment.file, 1)
    if not deployment.script.is_file():
        problem = f"there is no {near(str(deployment.script))}, which it names as scoring_script"
        raise StartError(problem, file=str(deployment.file), line=deployment.line, fix="correct code or scoring_script")
    reason = f"{deployment.file.name}:{deployment.line} names {deployment.script.name} as scoring_script"
    root = folder if deployment.code.is_relative_to(folder) else deployment.code
    return _entry(deployment.script, deployment.code, root, reason, deployment, certain=True)


def _in_folder(folder: Path, root: Path) -> Entry | None:
    for name in NAMES:
        if (folder / name).is_file():
            entry = _entry(folder / name, folder, root)
            if entry is not None:
                return entry
    others = [script for script in sorted(folder.glob("*score*.py")) if script.name not in NAMES]
    entries = [entry for script in others if (entry := _entry(script, folder, root)) is not None]
    if len(entries) > 1:
        names = " and ".join(entry.script.name for entry in entries)
        fix = f"name one: panglot serve {near(str(entries[0].script))}"
        raise StartError(f"{names} could each be the script", file=str(folder), fix=fix)
    return entries[0] if entries else None


def _entry(
    script: Path,
    folder: Path,
    root: Path,
    reason: str = "",
    deployment: Deployment | None = None,
    certain: bool = False,
) -> Entry | None:
    """The entry of a package, if a script is one. `certain`: the script is named somewhere, so it must be one."""
    is_scoring = SCORING.match(script.name) is not None
    word = WORDS.search(content_if_any(script))
    if not (certain or is_scoring or word or script.name.startswith(BATCH_DRIVER)):
        return None
    tree = parse(script)
    defined = functions(tree.body)
    both = {"init", "run"}
    missing = sorted(both - defined.keys() - bound_elsewhere(tree).keys())
    if missing:
        # Without such signs the file may belong to another dialect.
        if certain or (is_scoring and word is not None and len(missing) == 1):
            raise _incomplete(script, missing[0], defined)
        return None
    if not reason and word is not None:
        line = content_if_any(script)[: word.start()].count(b"\n") + 1
        reason = f"{script.name}:{line} says {word[0].decode()}"
    init = defined.get("init")
    where = f"{script.name}:{init.lineno} defines init() and run()" if init is not None else f"{script.name} has both"
    entry = Entry(script, folder, root, tree, f"{where}; {reason}" if reason else where, deployment)
    _check_run(entry)
    return entry


def _incomplete(script: Path, missing: str, defined: dict[str, Function]) -> StartError:
    other = next((node.lineno for name, node in defined.items() if name in ("init", "run")), 0)
    purpose = "def init(): it loads the model" if missing == "init" else "def run(raw_data): it answers one request"
    problem = f"User script at {near(str(script))} does not have a {missing}() function defined."
    return StartError(problem, file=str(script), line=other, fix=purpose)


# What run() must be


def _check_run(entry: Entry) -> None:
    """Raise StartError for a signature that the platform refuses, and for a script of a batch endpoint."""
    run = entry.run
    if run is None:
        return
    arguments = run.args
    plain = [argument.arg for argument in (*arguments.args, *arguments.kwonlyargs)]
    inputs = [name for name in plain if name != HEADERS]
    if is_batch(entry, inputs[0] if inputs else ""):
        raise batch_refusal(entry.script, run.lineno)
    if _decorators(run) - {"input_schema", "output_schema", "rawhttp"}:
        # Another decorator may change the signature: only the import of the script will tell.
        return
    if isinstance(run, ast.AsyncFunctionDef):
        problem = "run() is async, and the platform calls it without awaiting it"
        raise StartError(problem, file=str(entry.script), line=run.lineno, fix="def run, with asyncio.run inside")
    if arguments.posonlyargs or arguments.vararg or arguments.kwarg:
        problem = "run() cannot accept positional-only arguments, *args, or **kwargs."
        fix = "name its parameters: def run(raw_data)"
        raise StartError(problem, file=str(entry.script), line=run.lineno, fix=fix)
    if not inputs:
        problem = "run() needs to accept an argument for input data."
        if plain:
            problem = 'run() needs to accept an argument other than "request_headers".'
        raise StartError(problem, file=str(entry.script), line=run.lineno, fix="def run(raw_data)")
    if entry.is_raw and entry.is_decorated:
        problem = "run() cannot be decorated with both @rawhttp and @input_schema"
        raise StartError(problem, file=str(entry.script), line=run.lineno, fix="take one of them away")


def is_batch(entry: Entry, first: str) -> bool:
    """Whether `run` belongs to a batch endpoint: it loops over its argument, a list of files. Online it gets a text."""
    if entry.script.name.startswith(BATCH_DRIVER) or first in ("mini_batch", "minibatch", "mini_batch_files"):
        return True
    run = entry.run
    if run is None or not first or entry.is_decorated or entry.is_raw:
        return False
    nodes = list(ast.walk(run))
    is_changed = any(isinstance(node, ast.Name) and node.id == first and _is_store(node) for node in nodes)
    loops = [node.iter for node in nodes if isinstance(node, ast.For | ast.comprehension)]
    return not is_changed and any(isinstance(over, ast.Name) and over.id == first for over in loops)


def _is_store(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)


def batch_refusal(file: Path, line: int) -> StartError:
    return StartError(
        "this is a script of an Azure ML batch endpoint, which Panglot does not serve: its run() gets a list of files",
        file=str(file),
        line=line,
        fix="serve a script of an online endpoint, whose run(raw_data) answers one request",
    )


def _decorators(function: Function) -> set[str]:
    return set(filter(None, map(_last_name, function.decorator_list)))


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Call):
        node = node.func
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def joined_paths(tree: ast.Module) -> Iterator[str]:
    """The paths below AZUREML_MODEL_DIR that a script names by plain texts, with `os.path.join` or with `/`."""
    names = {
        target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and _is_model_dir(node.value, set())
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _last_name(node.func) == "join" and node.args:
            rest = [part.value for part in node.args[1:] if isinstance(part, ast.Constant)]
            if _is_model_dir(node.args[0], names) and rest and len(rest) == len(node.args) - 1:
                yield "/".join(map(str, rest))
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and _is_model_dir(node.left, names):
            yield from [str(node.right.value)] if isinstance(node.right, ast.Constant) else []


def _is_model_dir(node: ast.expr, names: set[str]) -> bool:
    """Whether an expression reads the variable AZUREML_MODEL_DIR, in any way, or is a name with its value."""
    if isinstance(node, ast.Name):
        return node.id in names
    if isinstance(node, ast.Call):
        return any(_says_model_dir(part) or _is_model_dir(part, names) for part in node.args)
    return isinstance(node, ast.Subscript) and _says_model_dir(node.slice)


def _says_model_dir(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == "AZUREML_MODEL_DIR"
