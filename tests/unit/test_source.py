"""How our source is written: docstrings where they are needed, one meaning per class name, no state in modules."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src"
LONG = 8
"""Lines from which on a public function needs a docstring."""


def parts(path: Path) -> tuple[str, ...]:
    return path.relative_to(SOURCE).parts


FILES = [
    path
    for package in ("panglot", "panglot_worker")
    for path in sorted((SOURCE / package).rglob("*.py"))
    if not {"platform", "template"} & set(parts(path))
]


def name_of(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


@pytest.fixture(scope="module")
def trees() -> dict[str, ast.Module]:
    return {name_of(path): ast.parse(path.read_text()) for path in FILES}


# Docstrings


def undocumented(body: list[ast.stmt], inside: str = "") -> Iterator[str]:
    """Public functions and methods of public classes that are long and have no docstring."""
    for node in body:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) or node.name.startswith("_"):
            continue
        if isinstance(node, ast.ClassDef):
            yield from undocumented(node.body, f"{inside}{node.name}.")
        elif (node.end_lineno or 0) - node.lineno + 1 >= LONG and not ast.get_docstring(node):
            yield inside + node.name


def test_long_public_functions_have_docstrings(trees: dict[str, ast.Module]) -> None:
    without = {f"{name}:{function}" for name, tree in trees.items() for function in undocumented(tree.body)}
    assert sorted(without) == []


def test_modules_and_public_classes_have_docstrings(trees: dict[str, ast.Module]) -> None:
    assert [name for name, tree in trees.items() if tree.body and not ast.get_docstring(tree)] == []


# Names


SAME = {"Answer", "Dialect", "Package"}
"""Two classes each, one in the front and one in the worker, for the same thing seen from two sides."""


def test_a_class_name_stands_for_one_thing(trees: dict[str, ast.Module]) -> None:
    """Outside of the dialects' own folders, where the folder tells which is meant."""
    names = Counter(
        node.name
        for name, tree in trees.items()
        if name.count("/") < 3 or "/dialects/" not in name
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert {name for name, count in names.items() if count > 1} - SAME == set()


@pytest.mark.parametrize("word", ["found", "one"])
def test_a_variable_says_what_it_holds(word: str, trees: dict[str, ast.Module]) -> None:
    bindings = {
        f"{name}:{node.lineno}"
        for name, tree in trees.items()
        for node in ast.walk(tree)
        if (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id == word)
        or (isinstance(node, ast.arg) and node.arg == word)
    }
    assert sorted(bindings) == []


# State


EMPTY_MAKERS = {"list", "dict", "set", "defaultdict", "deque", "Counter", "OrderedDict", "bytearray", "count"}
CHANGERS = {
    "add", "append", "appendleft", "clear", "discard", "extend", "insert", "pop", "popitem", "popleft", "remove",
    "reverse", "setdefault", "sort", "update",
}  # fmt: skip
STILL_STATE = {"panglot_worker/scripts/current.py:running"}
"""May only get shorter."""


def bound(tree: ast.Module) -> dict[str, ast.expr]:
    """The names a module assigns at its top level, with their values."""
    values: dict[str, ast.expr] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign):
            values.update({target.id: node.value for target in node.targets if isinstance(target, ast.Name)})
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            values[node.target.id] = node.value
    return values


def is_for_filling(value: ast.expr) -> bool:
    """Whether a value is empty now, and so can only be meant to be filled later."""
    if isinstance(value, ast.Dict):
        return not value.keys
    if isinstance(value, ast.List | ast.Set):
        return not value.elts
    if isinstance(value, ast.Call) and not value.args and not value.keywords:
        function = value.func
        return (function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")) in EMPTY_MAKERS
    return False


def changed(tree: ast.Module, names: set[str]) -> Iterator[str]:
    """The names of these that the module changes in place or binds anew from inside a function."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            yield from node.names
        target: ast.expr | None = None
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGERS:
            target = node.func.value
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
            target = node.value
        if isinstance(target, ast.Name) and target.id in names:
            yield target.id


def test_no_module_holds_state(trees: dict[str, ast.Module]) -> None:
    state = set()
    for name, tree in trees.items():
        values = bound(tree)
        state |= {f"{name}:{variable}" for variable, value in values.items() if is_for_filling(value)}
        state |= {f"{name}:{variable}" for variable in changed(tree, set(values))}
    assert sorted(state - STILL_STATE) == []


WATCH = """
import importlib, sys

EVENTS = {"open", "os.listdir", "os.scandir", "os.mkdir", "subprocess.Popen", "socket.connect", "socket.bind"}

def watch(event, arguments):
    if event not in EVENTS:
        return
    frame = sys._getframe(1)
    while frame is not None and not frame.f_code.co_filename.startswith("<frozen importlib"):
        if frame.f_code.co_filename.startswith(SOURCE):
            print(frame.f_code.co_filename, frame.f_lineno, event, arguments[:1])
            return
        frame = frame.f_back

SOURCE, *names = sys.argv[1:]
sys.addaudithook(watch)
for name in names:
    importlib.import_module(name)
print("imported", len(names))
"""


@pytest.mark.parametrize("package", ["panglot", "panglot_worker"])
def test_importing_does_no_input_or_output(package: str) -> None:
    """Also not by the default of a class: whatever is read is read when something is made."""
    paths = [path for path in FILES if parts(path)[0] == package and path.name != "__main__.py"]
    modules = [".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__") for path in paths]
    done = subprocess.run(
        [sys.executable, "-c", WATCH, str(SOURCE), *modules],
        capture_output=True, text=True, check=False, env={"PYTHONPATH": str(SOURCE)},
    )  # fmt: skip
    assert done.stderr == ""
    assert done.stdout.splitlines() == [f"imported {len(modules)}"]
