"""What the source says of itself, read as syntax trees: codes of failures, series of /metrics, events."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"
FAULTS = ("Fault", "Problem", "Rejected")
"""Calls that begin with a status, a code and a message."""
CALLER, OF_JOB = "client", "job"
"""Where a code has no status: the caller's own, and the code in a job's field `error`."""
MODULE_OF_STATUSES = "panglot.web.jobs.asking"
"""Its `STATUSES` are the statuses of each JobTrouble, by code."""
OTHER_TROUBLE = "429"
SERIES = re.compile(r"panglot_[a-z_]+")
OF_SCHEMAS = {"array", "boolean", "integer", "null", "number", "object", "string"}
"""What `type` is in a JSON schema, which is no event."""
NAMED_EVENTS = ("_event", "_tell", "named", "mark")
"""Functions whose arguments hold the name of a server-sent event."""


class Failure(NamedTuple):
    """A failure that the source words."""

    code: str
    status: str
    message: str


class Series(NamedTuple):
    """A series of /metrics."""

    name: str
    kind: str
    about: str
    file: str


def trees() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(SOURCE.rglob("*.py")):
        if "platform" not in path.parts:
            yield str(path.relative_to(SOURCE)), ast.parse(path.read_text())


# Failures


def failures() -> list[Failure]:
    """Every code with a status and a message, sorted."""
    every: set[Failure] = set()
    read = {file.removesuffix(".py").replace("/", "."): tree for file, tree in trees()}
    constants = {module: _constants(tree) for module, tree in read.items()}
    statuses = _statuses(read[MODULE_OF_STATUSES], constants)
    for module, tree in read.items():
        names = constants[module] | _imported(tree, constants)
        every |= set(_failures_of_jobs(tree, names, statuses))
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            every |= set(_failures_of(call, names))
        for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)):
            every |= set(_failures_with_local_messages(function, names))
    return sorted(every)


def _imported(tree: ast.Module, constants: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """The texts of constants that a module imports from others."""
    return {
        alias.asname or alias.name: constants[node.module][alias.name]
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module in constants
        for alias in node.names
        if alias.name in constants[node.module]
    }


def _statuses(tree: ast.Module, constants: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """The statuses of each JobTrouble that has one of its own, by code."""
    (table,) = (
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict)
        for target in node.targets
        if isinstance(target, ast.Name) and target.id == "STATUSES"
    )
    codes = constants["panglot.jobs.job"]
    pairs = zip(table.keys, table.values, strict=True)
    return {codes[key.attr]: _text(value, {}) for key, value in pairs if isinstance(key, ast.Attribute)}


def _failures_of_jobs(tree: ast.Module, names: Mapping[str, str], statuses: Mapping[str, str]) -> Iterator[Failure]:
    """Commands that the store of jobs refuses, and ends of jobs that have no answer of the script."""
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)):
        for call in (node for node in ast.walk(function) if isinstance(node, ast.Call) and len(node.args) >= 2):
            name, (code, message) = getattr(call.func, "id", ""), (_text(word, names) for word in call.args[:2])
            if isinstance(call.args[1], ast.Name) and not message:
                message = _last_text(function, call.args[1].id, call.lineno)
            if name == "JobTrouble" and code:
                yield Failure(code, statuses.get(code, OTHER_TROUBLE), message)
            elif name == "fault_text" and code:
                yield Failure(code, OF_JOB, message)


def _failures_with_local_messages(
    function: ast.FunctionDef | ast.AsyncFunctionDef, names: dict[str, str]
) -> Iterator[Failure]:
    """The failures whose message is in a variable: the text that the lines before write to it last."""
    for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
        name = getattr(call.func, "id", getattr(call.func, "attr", ""))
        if name not in FAULTS or len(call.args) < 3 or not isinstance(call.args[2], ast.Name):
            continue
        status, code = (_text(argument, names) for argument in call.args[:2])
        message = _last_text(function, call.args[2].id, call.lineno)
        if code and message:
            yield Failure(code, status or "4xx", message)


def _last_text(function: ast.FunctionDef | ast.AsyncFunctionDef, variable: str, line: int) -> str:
    """The text that a function last writes to a variable before a line."""
    written = [
        (node.lineno, _text(node.value, {}))
        for node in ast.walk(function)
        if isinstance(node, ast.Assign)
        and node.lineno < line
        and any(isinstance(target, ast.Name) and target.id == variable for target in node.targets)
    ]
    return max(written, default=(0, ""))[1]


def _failures_of(call: ast.Call, names: dict[str, str]) -> Iterator[Failure]:
    name = getattr(call.func, "id", getattr(call.func, "attr", ""))
    words = [_text(argument, names) for argument in call.args]
    if name in FAULTS and len(words) >= 3 and words[1]:
        yield Failure(words[1], words[0] or "4xx", words[2])
    if name in ("ClientError", "__init__") and len(words) == 3 and words[1].isdigit() and words[2]:
        yield Failure(words[2], words[1], words[0])
    code = next((_text(keyword.value, names) for keyword in call.keywords if keyword.arg == "code"), "")
    if name == "CallError" and code and not any(keyword.arg == "status" for keyword in call.keywords):
        yield Failure(code, CALLER, words[0])


def _constants(tree: ast.Module) -> dict[str, str]:
    """The texts that the constants of a module stand for."""
    return {
        name.id: value.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        for name, value in _assigned(target, node.value)
        if isinstance(name, ast.Name) and name.id.isupper()
        if isinstance(value, ast.Constant) and isinstance(value.value, str)
    }


def _assigned(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The names of an assignment, each with what it stands for; of a chain of names, the last."""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        yield from zip(target.elts, value.elts, strict=False)
    else:
        yield target, value


def _text(node: ast.expr, names: Mapping[str, str]) -> str:
    """A text as written, with dots for what is put in."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part, names) if isinstance(part, ast.Constant) else "…" for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        return re.sub(r"%[sdr]", "…", _text(node.left, names))
    return names.get(node.id, "") if isinstance(node, ast.Name) else ""


# Starts that fail


class StartFailure(NamedTuple):
    """What is said when a start fails: the problem, and how to mend it."""

    part: str
    problem: str
    fix: str


def start_failures() -> list[StartFailure]:
    """Every one whose words stand in the source, by the part of it that says them."""
    every: set[StartFailure] = set()
    for file, tree in trees():
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            if getattr(call.func, "id", "") in ("StartError", "LoadError", "ScriptError") and call.args:
                problem = _text(call.args[0], _constants(tree))
                fix = next((_text(word.value, {}) for word in call.keywords if word.arg == "fix"), "")
                if len(problem.replace("…", "").split()) > 1:
                    every.add(StartFailure(_part(file), problem, fix))
    return sorted(every)


def _part(file: str) -> str:
    """Whose failure it is: a dialect's by its name, else that of a folder."""
    parts = file.split("/")
    if "dialects" in parts[1:2] and len(parts) > 3:
        return f"dialect {parts[2]}"
    return {"tools": "tools", "cli": "command line", "settings": "settings", "web": "address and access"}.get(
        parts[1], "packages"
    )


# Series


def series() -> list[Series]:
    """Every series with its kind and what it counts, sorted by name."""
    every: dict[str, Series] = {}
    for file, tree in trees():
        for name, about, kind in _pairs(tree):
            every.setdefault(name, Series(name, kind or _kind(name), about, file))
    return sorted(every.values())


def _pairs(tree: ast.Module) -> Iterator[tuple[str, str, str]]:
    """Names of series with what stands behind each: in a tuple, in a dict, or in a call of `heading`."""
    for function in ast.walk(tree):
        if isinstance(function, ast.Dict):
            for key, value in zip(function.keys, function.values, strict=True):
                if key is not None:
                    yield from _pair([key, value], {})
        elif isinstance(function, ast.FunctionDef | ast.Module):
            yield from _in_order(function)


def _in_order(function: ast.FunctionDef | ast.Module) -> Iterator[tuple[str, str, str]]:
    names: dict[str, str] = {}
    nodes = [node for node in ast.walk(function) if hasattr(node, "lineno")]
    for node in sorted(nodes, key=lambda node: (node.lineno, not isinstance(node, ast.Assign))):
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.targets[0], ast.Name)
        ):
            names[node.targets[0].id] = str(node.value.value)
        elif isinstance(node, ast.Tuple):
            yield from _pair(node.elts, names)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "heading":
            yield from _pair(node.args, names)


def _pair(nodes: list[ast.expr], names: dict[str, str]) -> Iterator[tuple[str, str, str]]:
    words = [_text(node, names) for node in nodes[:3]]
    if len(words) >= 2 and SERIES.fullmatch(words[0]) and " " in words[1]:
        yield words[0], words[1], words[2] if len(words) > 2 and words[2] in ("counter", "gauge", "histogram") else ""


def _kind(name: str) -> str:
    return "counter" if name.endswith("_total") else "gauge"


# Events


def worker_events() -> list[str]:
    """The types of EVENT frames that workers send."""
    types = set()
    for file, tree in trees():
        if file.startswith("panglot_worker/"):
            for node in ast.walk(tree):
                if isinstance(node, ast.Dict):
                    types |= {
                        value.value
                        for key, value in zip(node.keys, node.values, strict=True)
                        if isinstance(key, ast.Constant) and key.value == "type" and isinstance(value, ast.Constant)
                    }
    return sorted(
        kind for kind in types - OF_SCHEMAS if isinstance(kind, str) and f'"{kind}"' in _read("panglot/engine")
    )


def sent_events() -> list[str]:
    """The names of server-sent events: those of the status page, and those of streams of videos."""
    names = set()
    for file, tree in trees():
        if file.startswith(("panglot/web/pages", "panglot_worker/dialects/megflow")):
            for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
                name = getattr(call.func, "attr", getattr(call.func, "id", ""))
                if name in NAMED_EVENTS:
                    words = [argument.value for argument in call.args if isinstance(argument, ast.Constant)]
                    names |= {word for word in words if isinstance(word, str) and word.isidentifier()}
    return sorted(names)


def _read(folder: str) -> str:
    return "\n".join(path.read_text() for path in sorted((SOURCE / folder).rglob("*.py")))
