"""Scripts that start their server themselves: run as `python script.py` runs them, until they do.

A platform's function that starts the server is replaced by a shim, which calls `hand_over` with its arguments. The file
is the real `__main__` of this process and stays so. Its classes can be pickled, and processes that the script starts by
`multiprocessing` import it as usual. There `hand_over` does nothing, since no run is in progress.
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
    """The value that it handed over."""


HANDED = "__panglot_handed__"
"""The name of the list of handed-over objects, in the script's own module while it runs: shims know no other object,
and a process that the script starts must not find it."""


def run(path: str, starting: str) -> MainScript:
    """Run a file as `__main__` until it hands a value over, or ends. `starting` names the call that hands it over.

    Its folder is the first of the import path; `loading.enter` has set the arguments and the working directory. Raises
    ScriptError where it ends without handing a value over, and any exception of the script before that.
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
        # After the start, exceptions do not count: on the platform starting blocks for ever, so nothing ran after it.
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
    """Hand over the object to serve, and end the run; with `returns`, as some functions of platforms do, let it go on.

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
