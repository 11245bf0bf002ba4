"""The package `runpod` that the script imports: the original where it is installed, else the one in `platform`.

Two functions of either are replaced: the one that starts a server, and the one that reports to the platform.
"""

from __future__ import annotations

import sys
from typing import Any, Callable, Dict, List, Mapping

from panglot_worker.compat.importing import after_import
from panglot_worker.scripts import as_main

SERVERLESS, PROGRESS = "runpod.serverless", "runpod.serverless.modules.rp_progress"
DOWNLOAD = "runpod.serverless.utils.rp_download"
VERSION = "1.12.0"
"""The version whose behaviour this is, where the original is not there to say its own."""


def prepare(progress_update: Callable[[Any, Any], None], settings: Mapping[str, Any]) -> None:
    """Have `start` hand over to us, and progress be reported to the front, as soon as the script imports them.

    `settings` say how much our own downloads may fetch, and which hosts they may ask besides public ones.
    """

    def start(config: Any) -> None:
        """Serve the handler of a configuration; comes back only in processes that the script has started."""
        as_main.hand_over(config)

    after_import(SERVERLESS, lambda module: setattr(module, "start", start))
    # In the module itself: `runpod.serverless` takes its name from there when it is imported, right after this.
    after_import(PROGRESS, lambda module: setattr(module, "progress_update", progress_update))
    after_import(DOWNLOAD, lambda module: setattr(module, "settings", settings))


def arguments() -> Dict[str, Any]:
    """What the platform reads from the command line."""
    return {
        "rp_log_level": None, "rp_debugger": None, "rp_serve_api": None, "rp_api_port": 8000,
        "rp_api_concurrency": 1, "rp_api_host": "localhost", "test_input": None,
    }  # fmt: skip


def fitness_checks() -> List[Callable[[], Any]]:
    """The functions that the script has registered, without those that the platform adds for its own machines."""
    module = sys.modules.get("runpod.serverless.modules.rp_fitness")
    return list(getattr(module, "_fitness_checks", ()))


def clear_debugger() -> None:
    """Forget the timers of the last job: one of the same name fails otherwise."""
    module = sys.modules.get("runpod.serverless.utils.rp_debugger")
    if module is not None:
        module.clear_debugger_output()


def version() -> str:
    return str(getattr(sys.modules.get("runpod"), "__version__", VERSION))
