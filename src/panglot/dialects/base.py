"""What a dialect may provide, where it is found, and how its shape is checked.

A dialect is a folder of modules. Two are required, the rest are optional:

    detect.py      LOOKS_FOR, detect(path) or detect(path, given), arrange(package, settings); FALLBACK: tried last;
                   YIELDS: tried only where no other dialect recognises the path, because its files are often the
                   weights of another dialect's script;
                   ARCHIVES: endings of archives beside .zip and .tar.gz; `detect` gets the folder they are unpacked in
    contract.py    contract(package, settings)
    request.py     make_request(about, given); example(about, folder)
    settings.py    Settings, a subclass of panglot.settings.Settings; TABLES
    command.py     COMMAND, a click command: `panglot NAME`
    templates.py   TEMPLATES, by name; the first is the default of `panglot new`
    alone.py       run(package, settings), for packages that serve nothing

Each module is imported only when it is needed. The other half of a dialect runs in the worker. It is the folder
`panglot_worker/dialects/<name>/` for a dialect of Panglot, and `worker` inside the dialect's own folder for a dialect
that another distribution brings.
"""

from __future__ import annotations

import ast
import functools
import importlib
import importlib.util
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import panglot_worker
from panglot.errors import StartError
from panglot.terminal.text import counted

ENDING = ".template"
"""Files of templates end in this, so that no tool takes them for Panglot's own code."""


class ModuleShape(NamedTuple):
    """What a module of a dialect must define: functions, by their fewest and most arguments, and values."""

    functions: dict[str, tuple[int, int]]
    values: tuple[str, ...] = ()
    required: bool = False


MODULES = {
    "detect": ModuleShape({"detect": (1, 2)}, ("LOOKS_FOR",), required=True),
    "contract": ModuleShape({"contract": (2, 2)}, required=True),
    "request": ModuleShape({"make_request": (2, 2)}),
    "settings": ModuleShape({}, ("Settings",)),
    "command": ModuleShape({}, ("COMMAND",)),
    "templates": ModuleShape({}, ("TEMPLATES",)),
    "alone": ModuleShape({"run": (2, 2)}),
}


@dataclass(frozen=True)
class Template:
    """A package that `panglot new` writes: the files of one folder, and how it is then called."""

    files: dict[str, str]
    """Every file, in the order to show them, with what it is."""
    call: str
    """A curl line; {folder} stands for the package, and {name} for the name it is served under."""
    prepare: str = ""
    """The command to run before the package is served, with the same {folder}."""
    package: str = ""
    """The folder to serve, inside the package's folder; empty: the whole."""
    title: str = ""
    """What the package is, for the list of `panglot new` and as the title of its README."""
    sends: str = ""
    """The file that its test sends."""
    check: str = ""
    """What its test asserts about `answer`, in Python. Without it neither test nor README is written for a template."""
    answer: str = ""
    """What the curl line answers, for its README; `...` stands for what varies."""
    installs: str = ""
    """What to install, where no requirements.txt says it."""
    card: str = ""
    """The first lines of its README, for platforms that read them."""


@dataclass(frozen=True)
class Dialect:
    """A dialect by name. Its modules are imported on use."""

    name: str
    module: str
    folder: Path
    brought_by: str = ""
    """The distribution that brings it; empty for a dialect of Panglot."""

    def has(self, module: str) -> bool:
        """Whether the dialect provides a module, such as `request`, without importing it."""
        return (self.folder / f"{module}.py").is_file() or (self.folder / module / "__init__.py").is_file()

    def load(self, module: str) -> Any:
        """Import a module that the dialect provides. Raises StartError where the module has not its shape."""
        return _load(self, module)

    @property
    def worker_half(self) -> Path:
        """The folder that a worker loads the dialect from."""
        if self.brought_by:
            return self.folder / "worker"
        return Path(panglot_worker.__path__[0]).resolve() / "dialects" / self.name

    def platform_folders(self) -> list[Path]:
        """The folders of modules that its scripts import: first the one that wins over the environment, then the one
        that the environment wins over."""
        folders = (self.worker_half / "platform" / kind for kind in ("always", "fallback"))
        return [folder for folder in folders if folder.is_dir()]

    @property
    def docs(self) -> Path | None:
        """The README of the dialect, where its folder has one."""
        file = self.folder / "README.md"
        return file if file.is_file() else None

    def unusable(self, why: str) -> StartError:
        """The error for the author of a dialect that cannot be used."""
        return _unusable(self.name, self.brought_by, why)

    @property
    def about(self) -> str:
        """The first line of the docstring of the dialect's detector."""
        module: ModuleType = self.load("detect")
        return (module.__doc__ or "").strip().partition("\n")[0]


@functools.cache
def _load(dialect: Dialect, name: str) -> ModuleType:
    """Import a module, and check its shape here: to parse the files of all dialects would slow down every start."""
    module = importlib.import_module(f"{dialect.module}.{name}")
    problems = list(_check_loaded(module, MODULES[name])) if name in MODULES else []
    if problems:
        raise dialect.unusable("; ".join(f"{name}.py {problem}" for problem in problems))
    return module


def from_module(name: str, module: str, brought_by: str) -> Dialect:
    """The dialect that a distribution names by its entry point, checked. Raises StartError."""
    try:
        # Imports the packages above a dotted name, and nothing of the dialect itself.
        spec = importlib.util.find_spec(module)
    except ImportError as error:
        raise _unusable(name, brought_by, f"{module} cannot be imported: {error}") from None
    if spec is None or not spec.submodule_search_locations:
        raise _unusable(name, brought_by, f"{module} must be a folder of modules that can be imported")
    dialect = Dialect(name, module, Path(next(iter(spec.submodule_search_locations))), brought_by)
    problems = list(check(dialect))
    if problems:
        raise _unusable(name, brought_by, "; ".join(problems))
    return dialect


def _unusable(name: str, brought_by: str, why: str) -> StartError:
    fix = f"fix or uninstall {brought_by}" if brought_by else ""
    whose = f" of {brought_by}" if brought_by else ""
    return StartError(f"the dialect '{name}'{whose} cannot be used: {why}", fix=fix)


def check(dialect: Dialect) -> list[str]:
    """What is wrong with the shape of a dialect. Its files are read; nothing is imported."""
    problems = []
    for name, shape in MODULES.items():
        if dialect.has(name):
            problems += [f"{name}.py {problem}" for problem in _check_module(dialect, name, shape)]
    return problems + missing(dialect)


def missing(dialect: Dialect) -> list[str]:
    """The files without which a dialect cannot be used. Nothing is read."""
    problems = [f"{name}.py is missing" for name, shape in MODULES.items() if shape.required and not dialect.has(name)]
    if not (dialect.worker_half / "__init__.py").is_file():
        folder = dialect.worker_half
        shown = f"{folder.name}/" if dialect.brought_by else f"{folder}/"
        problems.append(f"{shown}__init__.py is missing")
    return problems


def _check_loaded(module: ModuleType, shape: ModuleShape) -> Iterator[str]:
    for name in (*shape.values, *shape.functions):
        if not hasattr(module, name):
            yield f"must define {name}"
    for name, (fewest, most) in shape.functions.items():
        function = getattr(module, name, None)
        if function is not None and not any(_accepts(function, count) for count in range(fewest, most + 1)):
            yield f"{name}{inspect.signature(function)} must take {_arguments(fewest, most)}"


def _accepts(function: Callable[..., Any], count: int) -> bool:
    try:
        inspect.signature(function).bind(*[None] * count)
    except TypeError:
        return False
    return True


def _arguments(fewest: int, most: int) -> str:
    return counted(most, "argument") if fewest == most else f"{fewest} or {most} arguments"


def _check_module(dialect: Dialect, name: str, shape: ModuleShape) -> list[str]:
    file = dialect.folder / f"{name}.py"
    try:
        tree = ast.parse((file if file.is_file() else dialect.folder / name / "__init__.py").read_bytes())
    except SyntaxError as error:
        return [f"line {error.lineno}: {error.msg}"]
    bound = _bound(tree)
    problems = [f"must define {value}" for value in shape.values if value not in bound]
    for function, (fewest, most) in shape.functions.items():
        node = bound.get(function, None) if function in bound else ...
        if node is ...:
            problems.append(f"must define {function}")
        # A function that comes by an import or an assignment counts as right: its arguments are not in this file.
        elif isinstance(node, ast.FunctionDef) and not _takes(node.args, fewest, most):
            taken = f"{function}({ast.unparse(node.args)})"
            problems.append(f"line {node.lineno}: {taken} must take {_arguments(fewest, most)}")
    return problems


def _bound(tree: ast.Module) -> dict[str, ast.stmt]:
    """The names a module binds at its top level, by definition, assignment or import."""
    names: dict[str, ast.stmt] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names[node.name] = node
        elif isinstance(node, ast.Assign):
            names.update({target.id: node for target in node.targets if isinstance(target, ast.Name)})
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names[node.target.id] = node
        elif isinstance(node, ast.ImportFrom | ast.Import):
            names.update({alias.asname or alias.name: node for alias in node.names})
    return names


def _takes(arguments: ast.arguments, fewest: int, most: int) -> bool:
    """Whether a function can be called with `fewest` positional arguments, and needs at most `most`."""
    named = [*arguments.posonlyargs, *arguments.args]
    required = len(named) - len(arguments.defaults)
    # In the syntax tree, None stands for a keyword argument without a default.
    needs_keyword = any(default is None for default in arguments.kw_defaults)
    return required <= most and (len(named) >= fewest or arguments.vararg is not None) and not needs_keyword
