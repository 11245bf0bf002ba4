"""Scripts that start their server themselves: run as `python script.py` runs them, until they do.

A platform's shim of the function that starts the server calls `hand_over` with what the script gave it. The file is the
real `__main__` of this process and stays it: classes defined in it can be pickled, and processes that the script starts
by `multiprocessing` import it as they would without us. There `hand_over` does nothing, since no run is in progress.
"""

from __future__ import annotations

import os
import sys
import threading
from importlib.machinery import SourceFileLoader
from types import ModuleType
from typing import Any, List, NamedTuple, NoReturn, Optional

from panglot_worker.errors import ScriptError
from panglot_worker.scripts import membership


class ServerStarted(SystemExit):
    """Ends the run of a script that has started its server. A script's own `except Exception` lets it pass."""


class MainScript(NamedTuple):
    """A script that was run as `__main__`."""

    module: ModuleType
    handed: Any
    """What it handed over."""


HANDED = "__panglot_handed__"
"""The name of the list of handed-over objects, in the script's own module while it runs: shims know no other object,
and a process that the script starts must not find it."""


def run(path: str, starting: str) -> MainScript:
    """Run a file as `__main__` until it hands something over, or ends. `starting` is the call that does it, in words.

    Its folder is the first of the import path; `loading.enter` has set the arguments and the working directory. Raises
    ScriptError where it ends without handing anything over, and what the script raises until then.
    """
    path = os.path.abspath(path)
    folder = os.path.dirname(path)
    if sys.path[:1] != [folder]:
        sys.path.insert(0, folder)
    loader = SourceFileLoader("__main__", path)
    code = loader.source_to_code(loader.get_data(path), path)
    module = ModuleType("__main__")
    # Without a spec, as Python leaves it: multiprocessing then imports the file in its processes, by this path.
    vars(module).update(__file__=path, __loader__=loader, __spec__=None, __package__=_package(path), __cached__=None)
    before = sys.modules.get("__main__")
    sys.modules["__main__"] = module
    handed: List[Any] = []
    vars(module)[HANDED] = handed
    try:
        exec(code, vars(module))  # noqa: S102  running the script is what this is for
    except BaseException as error:
        # What comes after the start never ran on the platform: there, starting blocks for ever.
        if not handed:
            if before is not None:
                sys.modules["__main__"] = before
            raise error from None
    finally:
        vars(module).pop(HANDED, None)
    if not handed:
        raise ScriptError(
            "the script ends without calling %s" % starting, path, fix="call it, with what is to be served"
        )
    return MainScript(module, handed[0])


def _package(path: str) -> Optional[str]:
    """The package that a script with relative imports is in, as `python -m` has it; None for all others."""
    levels = membership.dots(path)
    return membership.join(path, levels).rpartition(".")[0] if levels else None


def hand_over(value: Any, returns: bool = False) -> None:
    """Hand over what the script wants served, and end its run; where a platform's function returns, let it go on.

    Does nothing where no script is being run: in a process that the script started, or when it serves already.
    """
    # Looked up each time: a process that multiprocessing spawns has another `__main__`, without the list.
    handed: Optional[List[Any]] = vars(sys.modules["__main__"]).get(HANDED)
    if handed is None:
        return
    handed.append(value)
    if not returns:
        stop()


def stop() -> NoReturn:
    """End the run of the script here."""
    if threading.current_thread() is threading.main_thread():
        raise ServerStarted(0)
    # Python prints every exception of a thread except this type.
    raise SystemExit
