"""The model of a truss: its script imported, its class constructed and loaded as the platform does it."""

from __future__ import annotations

import contextlib
import inspect
import os
import sys
import time
from typing import Any, Callable, Dict, Tuple

from panglot_worker.dialects.base import Package
from panglot_worker.dialects.truss import environment, given
from panglot_worker.errors import ScriptError, described
from panglot_worker.scripts.loading import import_script

DATA = "data"
DATA_WORDS = (b"data_dir", b"/app/data")


def make_data_folder(script: str) -> None:
    """Make the folder of data files, which the platform always has, where the script speaks of it."""
    with contextlib.suppress(OSError), open(script, "rb") as file:
        text = file.read()
        if any(word in text for word in DATA_WORDS):
            os.makedirs(DATA, exist_ok=True)


def find(package: Package) -> Tuple[Any, Any]:
    """The script as a module, and its class. Raises ScriptError, and what the script raises."""
    folder, stem = os.path.dirname(package.script), os.path.splitext(os.path.basename(package.script))[0]
    parent = os.path.basename(folder)
    # `model` itself is the package that the script's siblings are imported from.
    module = import_script(package.script, "%s.%s" % (parent, stem) if parent == stem else stem)
    name = package.options["config"]["model_class_name"]
    kind = getattr(module, name, None)
    if not callable(kind):
        raise ScriptError(
            "there is no class %s in it" % name, package.script, fix="define it, or set model_class_name in config.yaml"
        )
    return module, kind


def construct(kind: Any, config: Dict[str, Any]) -> Tuple[Any, Any]:
    """The model, with the arguments that its class takes, and the environment it was told of. Raises ScriptError."""
    model = kind(**given.arguments(kind, config))
    platform = environment.current()
    if platform is not None and hasattr(model, "setup_environment"):
        model.setup_environment(platform)
    return model, platform


def load(model: Any, settled: Callable[[Any], Any], warn: Callable[[str], None]) -> None:
    """Run its `load()`, again as often as NUM_LOAD_RETRIES_TRUSS says where it fails. Raises what it raises."""
    tries = os.environ.get("NUM_LOAD_RETRIES_TRUSS", "1")
    left = int(tries) if tries.isdigit() else 1
    while True:
        try:
            settled(model.load())
        except Exception as error:
            left -= 1
            if left < 0:
                raise
            warn("load() failed and is tried again: %s" % described(error))
            time.sleep(1.0)
        else:
            return


def summary(kind: Any, module: Any) -> str:
    """The first paragraph of the docstring of the class, or of its file."""
    text = getattr(kind, "__doc__", "") or getattr(module, "__doc__", "") or ""
    return " ".join(inspect.cleandoc(text).split("\n\n")[0].split())


def chooses_status(module: Any) -> bool:
    """Whether the script has a response or an HTTPException at hand, and so any status."""
    modules = [sys.modules.get(name) for name in ("starlette.responses", "fastapi")]
    kinds = [getattr(each, name, None) for each in modules for name in ("Response", "HTTPException")]
    bases = tuple(kind for kind in kinds if isinstance(kind, type))
    return any(isinstance(value, type) and issubclass(value, bases) for value in vars(module).values())
