"""The loaded handler: what is called for requests, and what is called once before them."""

from __future__ import annotations

import importlib
import inspect
import os
from types import ModuleType
from typing import Any, Callable, List, NamedTuple

from panglot_worker.compat.model_context import Context
from panglot_worker.dialects.base import Package
from panglot_worker.errors import ScriptError
from panglot_worker.scripts.loading import import_script

ENVELOPES = "ts.torch_handler.request_envelope."
BUILT_IN = "ts.torch_handler."
FORM = "def handle(data, context), or one class with initialize(self, context) and handle(self, data, context)"

Handle = Callable[[Any, Context], Any]


class LoadedHandler(NamedTuple):
    """A handler as the platform calls it."""

    handle: Handle
    initialize: Callable[[Context], Any]
    name: str
    summary: str

    @property
    def loader(self) -> str:
        """What `initialize` calls: the method of a class, or the function itself, with None for the requests."""
        kind, dot, _ = self.name.rpartition(".")
        return kind + ".initialize" if dot else self.name + "(None, context)"


def load(package: Package, envelope: str) -> LoadedHandler:
    """Import the handler, and make its object. Raises ScriptError, and whatever the script raises."""
    module, function = _module(package), str(package.options["handler"]).partition(":")[2]
    loaded: LoadedHandler = _function(module, function or "handle") or _object(module, package)
    if not envelope:
        return loaded
    wrapped = _wrapped(loaded.handle, envelope, package)
    return LoadedHandler(wrapped, loaded.initialize, loaded.name, loaded.summary)


def _module(package: Package) -> ModuleType:
    if package.script.endswith(".py"):
        # Unlike the original, an import that fails inside of the script is told as such.
        return import_script(package.script)
    name = str(package.options["handler"]).partition(":")[0].rpartition("/")[2]
    return importlib.import_module(BUILT_IN + (name[:-3] if name.endswith(".py") else name))


def _function(module: ModuleType, name: str) -> Any:
    entry = getattr(module, name, None)
    if not callable(entry):
        return None
    return LoadedHandler(entry, lambda context: entry(None, context), name, _summary(entry, module))


def _object(module: ModuleType, package: Package) -> LoadedHandler:
    kinds = classes_of(module)
    if len(kinds) != 1:
        names = ", ".join(kind.__name__ for kind in kinds) or "none"
        problem = "there is no function handle, and a handler needs exactly one class; the classes are: %s" % names
        raise ScriptError(problem, package.script, fix=FORM)
    kind = kinds[0]
    made = kind()
    if not hasattr(made, "handle"):
        problem = "%s has no handle" % kind.__name__
        raise ScriptError(problem, package.script, inspect.getsourcelines(kind)[1], "def handle(self, data, context)")
    initialize = getattr(made, "initialize", lambda context: None)
    # Taken before `initialize` is called, as in the original: a `handle` that it puts in place has no effect.
    return LoadedHandler(made.handle, initialize, kind.__name__ + ".handle", _summary(kind, module))


def classes_of(module: ModuleType) -> List[Any]:
    """The classes that a module defines itself."""
    return [kind for _, kind in inspect.getmembers(module, inspect.isclass) if kind.__module__ == module.__name__]


def _summary(entry: Any, module: ModuleType) -> str:
    text = entry.__doc__ or module.__doc__ or ""
    return " ".join(inspect.cleandoc(text).split("\n\n")[0].split())


def _wrapped(handle: Handle, envelope: str, package: Package) -> Handle:
    """A handler inside of one of the platform's envelopes. Raises ScriptError where there is none of the name."""
    try:
        module = importlib.import_module(ENVELOPES + envelope)
    except ModuleNotFoundError as error:
        if error.name != ENVELOPES + envelope:
            raise
        problem = "there is no service_envelope %s" % envelope
        raise ScriptError(problem, package.script, fix="use body, json, kserve or kservev2") from None
    wrapped: Handle = classes_of(module)[0](handle).handle
    return wrapped


def gpu_id(package: Package) -> Any:
    """The GPU of this worker: with `--device cuda:N` the only one it sees, else one of all by its number; or None."""
    device = os.environ.get("PANGLOT_DEVICE", package.settings.get("device", ""))
    if device:
        return 0 if str(device).startswith("cuda") else None
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        count = len([entry for entry in visible.split(",") if entry.strip() not in ("", "-1")])
    else:
        folder = "/proc/driver/nvidia/gpus"
        count = len(os.listdir(folder)) if os.path.isdir(folder) else 0
    return package.worker % count if count else None
