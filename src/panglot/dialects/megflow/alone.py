"""Running a graph that serves nothing: a process with the script's interpreter, and its exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from panglot.engine.processes.process import worker_folder
from panglot.errors import LoadError
from panglot.packages.package import Package
from panglot.settings import Settings
from panglot.settings.variables import without_secrets
from panglot_worker.life import loader

CODE = loader.code("panglot_worker.dialects.megflow.alone")


def run(package: Package, settings: Settings) -> int:
    """Run a graph to its end, and return its exit code. Raises LoadError when it cannot be loaded."""
    with tempfile.TemporaryDirectory(prefix="panglot-") as folder:
        request = {**package.for_worker(), "settings": settings.for_worker()}
        Path(folder, "request.json").write_text(json.dumps(request))
        command = [settings.python or sys.executable, "-c", CODE, worker_folder(), folder]
        try:
            environment = {**without_secrets(os.environ), **package.environment}
            code = subprocess.run(command, env=environment, check=False).returncode
        except KeyboardInterrupt:
            # The usual end of such a graph. The terminal sends Ctrl-C to the graph's process too.
            return 0
        failure = Path(folder, "failure.json")
        if failure.is_file():
            why = json.loads(failure.read_text())
            raise LoadError(
                why["problem"], file=why["file"], line=why["line"], fix=why["fix"], traceback=why["traceback"]
            )
    # As shells count: 128 and the number of the signal that ended the process.
    return code if code >= 0 else 128 - code
