"""The loaded script: the platform's functions that it has, and which of them take the context."""

from __future__ import annotations

import inspect
import os
import sys
from types import ModuleType
from typing import Any, Callable, Dict, NamedTuple, Optional

from panglot_worker.dialects.base import Package
from panglot_worker.errors import ScriptError
from panglot_worker.scripts.loading import import_script

ARGUMENTS = {
    "model_fn": 1, "input_fn": 2, "predict_fn": 2, "output_fn": 2, "transform_fn": 4, "pre_model_fn": 1,
    "model_warmup_fn": 2,
}  # fmt: skip
"""The functions of a script, and how many arguments each has without the context."""


class ScriptFunction(NamedTuple):
    """A function of the script."""

    call: Callable[..., Any]
    takes_context: bool


class Script(NamedTuple):
    """A script, by its functions."""

    module: Optional[ModuleType]
    functions: Dict[str, ScriptFunction]

    @property
    def takes_context(self) -> bool:
        return any(function.takes_context for function in self.functions.values())

    def get(self, name: str) -> Any:
        """Any other object of the script's module, by its name; None where there is none."""
        return getattr(self.module, name, None)


def load(package: Package) -> Script:
    """Import the script. Raises ScriptError for functions that cannot be called, and whatever the script raises."""
    if not package.options.get("has_script"):
        return Script(None, {})
    module = _imported(package.script)
    functions = {}
    for name, count in ARGUMENTS.items():
        function = getattr(module, name, None)
        if function is not None:
            functions[name] = _checked(name, function, count, package.script)
    others = [name for name in ("input_fn", "predict_fn", "output_fn") if name in functions]
    if "transform_fn" in functions and others:
        problem = (
            "Cannot use transform_fn implementation in conjunction with input_fn, predict_fn, and/or output_fn "
            "implementation"
        )
        raise ScriptError(problem, package.script, fix="remove transform_fn, or " + " and ".join(others))
    return Script(module, functions)


def _imported(file: str) -> ModuleType:
    """The script by its own name, which pickles of its classes refer to, as the platform imports it."""
    stem = os.path.splitext(os.path.basename(file))[0]
    if stem in sys.modules or not stem.isidentifier():
        return import_script(file)
    return import_script(file, stem)


def _checked(name: str, function: Any, count: int, file: str) -> ScriptFunction:
    """A function with the number of parameters that the platform calls it with. Raises ScriptError."""
    given = len(inspect.signature(function).parameters)
    code = getattr(inspect.unwrap(function), "__code__", None)
    where = (getattr(code, "co_filename", file), getattr(code, "co_firstlineno", 0))
    if given not in (count, count + 1):
        problem = "%s takes %d arguments but %d were given." % (name, given, count)
        raise ScriptError(problem, *where, fix="give it %d parameters, or one more for the context" % count)
    if inspect.iscoroutinefunction(function):
        problem = "%s is async, and the platform calls it without awaiting it" % name
        raise ScriptError(problem, *where, fix="def %s" % name)
    return ScriptFunction(function, given == count + 1)
