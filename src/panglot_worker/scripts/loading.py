"""Importing a user's script as if it had been started in its own folder, and explaining why that failed."""

from __future__ import annotations

import contextlib
import importlib.util
import linecache
import os
import re
import sys
import traceback
from types import ModuleType
from typing import Any, Dict, Iterator, NamedTuple, Optional, Sequence

from panglot_worker.clipping import LONGEST_TRACEBACK, clipped
from panglot_worker.compat import devices
from panglot_worker.dialects.base import Package
from panglot_worker.errors import ScriptError, described
from panglot_worker.scripts import membership

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class LoadFailure(NamedTuple):
    """A failed load, as the frame FAILED carries it."""

    problem: str
    file: str = ""
    line: int = 0
    fix: str = ""
    traceback: str = ""
    missing: str = ""
    """The package to install, where that is the problem."""


def enter(package: Package) -> None:
    """Give the process the working directory, import path and arguments the script expects."""
    os.chdir(package.run_folder or package.folder)
    sys.argv = [package.script, *package.arguments]
    always, fallback = package.platform("always"), package.platform("fallback")
    rest = [entry for entry in sys.path if entry not in ("", package.folder)]
    # The script's own modules win over the platform's, and installed packages win over the platform's fallback.
    first = [package.folder] + [path for path in (always,) if os.path.isdir(path)]
    last = [path for path in (package.run_folder, fallback) if os.path.isdir(path)]
    sys.path[:] = first + rest + last


def import_script(path: str, name: Optional[str] = None) -> ModuleType:
    """Import a file under its own name, or a private one where that name is a module already.

    A script with relative imports is also a module of its folder's package (`membership`), and has that `__name__`.
    """
    if name is None:
        stem = os.path.splitext(os.path.basename(path))[0]
        # CPython 3.8 and 3.9 have no such list: there only the names of loaded modules are known.
        standard = getattr(sys, "stdlib_module_names", ())
        taken = stem in sys.modules or stem in standard or not stem.isidentifier()
        name = "panglot_script_" + "".join(c if c.isalnum() else "_" for c in stem) if taken else stem
    levels = membership.dots(path)
    names = [name, membership.join(path, levels)] if levels else [name]
    spec = importlib.util.spec_from_file_location(names[-1], path)
    if spec is None or spec.loader is None:
        raise ScriptError("%s cannot be imported as Python" % path, path)
    module = importlib.util.module_from_spec(spec)
    # Before the code runs, as the import system does it: the script may import itself, or pickle its classes.
    sys.modules.update(dict.fromkeys(names, module))
    with _forget_on_failure(names):
        spec.loader.exec_module(module)
    return module


@contextlib.contextmanager
def _forget_on_failure(names: Sequence[str]) -> Iterator[None]:
    try:
        yield
    except BaseException:
        for name in names:
            sys.modules.pop(name, None)
        raise


def explain(error: BaseException, package: Package, doing: str) -> LoadFailure:
    """The exception that stopped a load as one line with file, line and fix, and the script's own traceback."""
    text = script_traceback(error)
    if isinstance(error, ScriptError):
        cause = error.__cause__
        return LoadFailure(error.problem, error.file, error.line, error.fix, script_traceback(cause) if cause else "")
    file, line = _where(error, package.folder)
    if isinstance(error, SyntaxError):
        return LoadFailure("syntax error: %s" % error.msg, error.filename or file, error.lineno or line, "", text)
    if isinstance(error, ModuleNotFoundError) and error.name:
        parent, _, own = error.name.rpartition(".")
        inside = next(iter(getattr(sys.modules.get(parent), "__path__", ())), "")
        if parent and (inside + os.sep).startswith(package.folder + os.sep):
            fix = "write %s.py there, or correct the name" % own
            return LoadFailure("there is no module %s in %s" % (own, inside), file, line, fix, text)
        return _not_installed(error.name, file, line, text)
    if isinstance(error, ImportError) and _is_stand_in(error.name or ""):
        problem = "%s, of which Panglot has only what most scripts import" % str(error).partition(" (")[0]
        return LoadFailure(problem, file, line, "", text, _distribution(error.name or ""))
    if isinstance(error, SystemExit):
        return LoadFailure(
            "the script ended the process with exit code %s while %s" % (error.code, doing), file, line, "", text
        )
    missing = devices.explain(error)
    if missing:
        return LoadFailure(missing, file, line, devices.FIX, text)
    fix = _unquoted(file, line, package.folder) if isinstance(error, NameError) else ""
    return LoadFailure("%s failed: %s" % (doing, described(error)), file, line, fix, text)


def _not_installed(name: str, file: str, line: int, text: str) -> LoadFailure:
    distribution = _distribution(name)
    if distribution:
        problem = "the module '%s' is not installed for %s" % (name, sys.executable)
        return LoadFailure(problem, file, line, "", text, distribution)
    top = name.partition(".")[0]
    problem = "the package '%s' is not installed for %s" % (top, sys.executable)
    return LoadFailure(problem, file, line, "", text, top)


def _is_stand_in(name: str) -> bool:
    """Whether a module is a stand-in of Panglot for a module of a platform."""
    return str(getattr(sys.modules.get(name), "__file__", "")).startswith(HERE)


def _distribution(name: str) -> str:
    """The package to install for a module of a platform, where Panglot's stand-in has only some modules; else empty."""
    known: Dict[str, str] = getattr(sys.modules.get(name.partition(".")[0]), "__distributions__", {})
    while name and name not in known:
        name = name.rpartition(".")[0]
    return known.get(name, "")


def _unquoted(file: str, line: int, folder: str) -> str:
    """The fix for a file name without quotes in a script: Python takes it for an attribute of a name."""
    text = linecache.getline(file, line)
    for name in re.finditer(r"(?<![\w.'\"])[A-Za-z_]\w*\.[A-Za-z]\w*(?![\w.('\"])", text):
        if os.path.exists(os.path.join(folder, name.group())):
            return "there is a file %s: write '%s', with quotes" % (name.group(), name.group())
    return ""


def script_traceback(error: BaseException) -> str:
    """The traceback as the script's author would see it, without Panglot's frames in front; cut when it is long."""
    frames = error.__traceback__
    # Only the leading frames: a frame of Panglot between two of the script tells how they are connected.
    while frames is not None and _is_ours(frames.tb_frame.f_code.co_filename):
        frames = frames.tb_next
    # Three arguments: the form with the exception alone exists since CPython 3.10.
    text = "".join(traceback.format_exception(type(error), error, frames or error.__traceback__))
    return clipped(text, LONGEST_TRACEBACK)


def _is_ours(filename: str) -> bool:
    if filename.startswith(HERE):
        return os.sep + "platform" + os.sep not in filename[len(HERE) :]
    return filename.startswith("<frozen importlib")


def _where(error: BaseException, folder: str) -> Any:
    """File and line of the innermost frame in the package."""
    file_and_line = ("", 0)
    for entry in traceback.extract_tb(error.__traceback__):
        if os.path.abspath(entry.filename).startswith(folder + os.sep):
            file_and_line = (entry.filename, entry.lineno or 0)
    return file_and_line


def as_dict(failure: LoadFailure) -> Dict[str, Any]:
    return dict(failure._asdict())
