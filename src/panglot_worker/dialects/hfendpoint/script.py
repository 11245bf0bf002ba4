"""The script's handler class: found and constructed as the platform does it."""

from __future__ import annotations

import inspect
import sys
from typing import Any, Type

from panglot_worker.dialects.base import Package
from panglot_worker.dialects.hfendpoint.pipelines import DefaultHandler
from panglot_worker.errors import ScriptError
from panglot_worker.scripts.loading import import_script


def find(package: Package) -> Type[Any]:
    """Import the script by the platform's name for it, and take its handler class. Raises ScriptError."""
    if package.options.get("pipeline"):
        return DefaultHandler
    module = import_script(package.script, package.options["module"])
    name = package.options["class"]
    kind = getattr(module, name, None)
    if not isinstance(kind, type):
        raise ScriptError(
            "there is no class %s in it" % name, package.script, fix="define class %s, or import it" % name
        )
    return kind


def construct(kind: Type[Any], package: Package) -> Any:
    """The handler, made with the package's folder. Raises ScriptError when it cannot be made or called so."""
    try:
        inspect.signature(kind).bind(package.folder)
    except TypeError as error:
        raise _misfit(kind, "__init__", error, 'def __init__(self, path="")', package) from None
    except ValueError:
        pass  # it is no Python code, and has no signature to look at
    handler = kind(package.folder)
    if not callable(handler):
        raise ScriptError(
            "%s has no __call__" % kind.__name__, package.script, _line(kind), fix="def __call__(self, data)"
        )
    try:
        inspect.signature(handler).bind({})
    except TypeError as error:
        raise _misfit(kind, "__call__", error, "def __call__(self, data)", package) from None
    except ValueError:
        pass
    return handler


def _misfit(kind: Type[Any], method: str, error: TypeError, fix: str, package: Package) -> ScriptError:
    code: Any = getattr(getattr(kind, method), "__code__", None)
    return ScriptError(
        "%s.%s must take one argument besides self: %s" % (kind.__name__, method, error),
        getattr(code, "co_filename", package.script),
        getattr(code, "co_firstlineno", 0),
        fix=fix,
    )


def _line(kind: Type[Any]) -> int:
    try:
        return inspect.getsourcelines(kind)[1]
    except (OSError, TypeError):
        return 0


def summary(kind: Type[Any]) -> str:
    """The first paragraph of what the author wrote about the class, or about its file."""
    text = kind.__doc__ or getattr(sys.modules.get(kind.__module__), "__doc__", "") or ""
    return " ".join(inspect.cleandoc(text).split("\n\n")[0].split())
