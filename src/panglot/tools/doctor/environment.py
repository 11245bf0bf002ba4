"""The checks of the worker's interpreter by `panglot doctor`: its version, its packages, missing imports."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from panglot import dialects
from panglot.engine.processes import process
from panglot.errors import StartError, near
from panglot.packages.distributions import pip_line
from panglot.packages.package import Package
from panglot.packages.source import parse
from panglot.tools.doctor.finding import PROBLEM, WARNING, Finding
from panglot_worker.life.output_pipes import OutputPipes

WORKER = "worker"
MOST_FOLDERS = 500
"""The most folders of a package that are searched for a module."""
OTHER_PYTHON = "name one with --python /path/to/venv/bin/python"
HELPERS = {
    "orjson": ["orjson"],
    "numpy": ["numpy"],
    "PIL": ["pillow", "pillow-simd"],
    "cv2": [
        "opencv-python",
        "opencv-python-headless",
        "opencv-contrib-python",
        "opencv-contrib-python-headless",
    ],
}
"""Modules that a worker uses where they are installed, with the distributions that have them."""

FRAMEWORKS = {
    "torch": ["torch"],
    "tensorflow": ["tensorflow", "tensorflow-cpu", "tensorflow-gpu", "tensorflow-intel", "tf-nightly"],
    "paddle": ["paddlepaddle", "paddlepaddle-gpu"],
    "mindspore": ["mindspore", "mindspore-gpu", "mindspore-ascend"],
    "onnxruntime": ["onnxruntime", "onnxruntime-gpu"],
    "megengine": ["MegEngine"],
    "mxnet": ["mxnet", "mxnet-mkl", "mxnet-cu112", "mxnet-cu110"],
}


@dataclass(frozen=True)
class Import:
    """A module that a script imports at its top level."""

    name: str
    file: Path
    line: int


@dataclass(frozen=True)
class Interpreter:
    """An interpreter and its modules, as the probe has reported them."""

    executable: str
    version: str
    implementation: str
    versions: dict[str, str | None]
    missing: frozenset[str]


def probe(python: str, package: Package | None = None, modules: Iterable[str] = ()) -> Interpreter:
    """Ask an interpreter for its version and modules. Raises StartError when it does not run."""
    wanted = {"versions": HELPERS | FRAMEWORKS, "modules": sorted(set(modules)), **_search_path(package)}
    source = (Path(__file__).parent / "probe.py").read_text(encoding="utf-8")
    done = _run(python, source, json.dumps(wanted))
    try:
        answer = json.loads(done.stdout)
        return Interpreter(**answer | {"missing": frozenset(answer["missing"])})
    except (ValueError, KeyError, TypeError):
        # Too old for the probe, or no Python at all: a line that every Python runs tells which.
        version = _run(python, "import sys; sys.stdout.write('Python %d.%d' % sys.version_info[:2])").stdout
        reason = f"{version}; workers need 3.8 or newer" if version.startswith("Python ") else "no Python interpreter"
        raise StartError(f"{python} is {reason}", fix=OTHER_PYTHON) from None


def _run(python: str, *code: str) -> subprocess.CompletedProcess[str]:
    command = [python or sys.executable, "-c", *code]
    try:
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=60,
            check=False,
            cwd="/",
            env=_environment(),
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        reason = getattr(error, "strerror", "") or "it does not answer"
        raise StartError(f"{python} is no Python interpreter: {reason}", fix=OTHER_PYTHON) from None


def _search_path(package: Package | None) -> dict[str, list[str]]:
    """The folders that a worker puts before and behind the environment's own on sys.path."""
    if package is None:
        return {"first": [], "last": []}
    platform = dialects.find(package.dialect).worker_half / "platform"
    return {"first": [str(package.folder), str(platform / "always")], "last": [str(platform / "fallback")]}


def _environment() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if not key.startswith("PANGLOT_")}


def describe(interpreter: Interpreter) -> list[Finding]:
    """Findings about the interpreter, the modules that a worker uses, and the frameworks."""
    python = f"{interpreter.executable} ({interpreter.implementation} {interpreter.version})"
    findings = [Finding(WORKER, "interpreter", python)]
    if interpreter.implementation != "CPython":
        findings = [Finding(WORKER, "interpreter", python, WARNING, "Panglot is tested on CPython only")]
    findings += [_helper(name, interpreter) for name in HELPERS]
    frameworks = [
        f"{name} {interpreter.versions[name]}".rstrip() for name in FRAMEWORKS if interpreter.versions[name] is not None
    ]
    findings.append(Finding(WORKER, "frameworks", ", ".join(frameworks) or "none found"))
    return findings


def _helper(name: str, interpreter: Interpreter) -> Finding:
    version = interpreter.versions[name]
    if version is None and name == "orjson":
        fix = pip_line(interpreter.executable, name)
        return Finding(WORKER, name, "not installed; JSON takes longer", WARNING, fix)
    return Finding(WORKER, name, "not installed" if version is None else version or "found, version unknown")


# Processes


def worker_process(python: str, patience: float = 5.0) -> Finding:
    """Start a worker without a package, then act like a front that is killed: the worker must end."""
    name = "process"
    with tempfile.TemporaryDirectory() as folder:
        started = process.start(python, Path(folder), _environment(), OutputPipes(wanted=False))
        try:
            code = _wait(started.process, 0.5)
            if code is not None:
                output = os.read(started.output_fd, 65536).decode(errors="replace").strip().splitlines()
                os.close(started.life_fd)
                reason = output[-1] if output else process.cause(code)
                return Finding(WORKER, name, f"a worker does not start: {reason}", PROBLEM, OTHER_PYTHON)
            # This pipe closes with its front, however the front ends; the worker watches the other end.
            os.close(started.life_fd)
            began = time.monotonic()
            if _wait(started.process, patience) is None:
                value = "a worker outlives a front that is killed"
                return Finding(WORKER, name, value, WARNING, "after a kill -9, look for leftover workers")
            return Finding(WORKER, name, f"starts, and ends {(time.monotonic() - began) * 1000:.0f} ms after its front")
        finally:
            process.kill_group(started.process)
            started.process.wait()
            started.socket.close()
            os.close(started.output_fd)


def _wait(started: subprocess.Popen[bytes], seconds: float) -> int | None:
    try:
        return started.wait(seconds)
    except subprocess.TimeoutExpired:
        return None


# Imports of a script


def imports(package: Package) -> list[Import]:
    """The imports of the script and of the modules beside it, at their top level, each once. Raises StartError."""
    imported: dict[str, Import] = {}
    waiting = [package.script] if package.script.suffix == ".py" else []
    seen = set(waiting)
    while waiting:
        file = waiting.pop(0)
        for name, line in _top_level(parse(file)):
            imported.setdefault(name, Import(name, file, line))
            for own in (package.folder / f"{name}.py", package.folder / name / "__init__.py"):
                if own.is_file() and own not in seen:
                    seen.add(own)
                    waiting.append(own)
    return list(imported.values())


def _top_level(tree: ast.Module) -> list[tuple[str, int]]:
    names: list[tuple[str, int]] = []
    for node in tree.body:
        if isinstance(node, ast.Import):
            names += [(alias.name.partition(".")[0], node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.append((node.module.partition(".")[0], node.lineno))
    return names


def missing(wanted: Iterable[Import], interpreter: Interpreter, folder: Path | None = None) -> list[Finding]:
    """A finding for every import that the interpreter does not have. A module in the package is only a warning."""
    return [_missing(entry, interpreter, folder) for entry in wanted if entry.name in interpreter.missing]


def _missing(entry: Import, interpreter: Interpreter, folder: Path | None) -> Finding:
    where = f"{near(str(entry.file))}:{entry.line}"
    own = _of_package(entry, folder) if folder is not None else None
    if own is not None:
        value = f"{where} imports {entry.name}, which is in {near(str(own))}: scripts look for it beside themselves"
        return Finding("package", "import", value, WARNING, f"if it is not found: PYTHONPATH={near(str(own))}")
    if entry.name in sys.stdlib_module_names:
        value = f"{where} imports {entry.name}, which Python {interpreter.version} does not have"
        return Finding("package", "import", value, PROBLEM, "serve with --python of another version")
    value = f"{where} imports {entry.name}, which is not installed"
    return Finding("package", "import", value, PROBLEM, pip_line(interpreter.executable, entry.name), where)


def _of_package(entry: Import, folder: Path) -> Path | None:
    """The folder with a module of this name: the script's, the package's, or one below; None where there is none."""
    below = sorted(child for child in folder.rglob("*") if child.is_dir())[:MOST_FOLDERS]
    for candidate in (entry.file.parent, folder, *below):
        if (candidate / f"{entry.name}.py").is_file() or (candidate / entry.name / "__init__.py").is_file():
            return candidate
    return None


def as_loaded(finding: Finding) -> Finding:
    """The finding of a missing import as a warning, because the script has loaded nevertheless."""
    value = finding.value + " where it was looked for; the script finds it by its own means"
    return Finding(finding.section, finding.name, value, WARNING)
