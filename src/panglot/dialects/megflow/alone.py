"""Running a graph that serves nothing: a process with the script's interpreter, and its exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from panglot.engine.process import worker_folder
from panglot.errors import LoadError
from panglot.package import Package
from panglot.settings import Settings

LOADER = """\
import sys
sys.path[:] = [entry for entry in sys.path if entry]
from importlib import util
folder, work = sys.argv[1:3]
spec = util.spec_from_file_location("panglot_worker", folder + "/__init__.py", submodule_search_locations=[folder])
sys.modules["panglot_worker"] = module = util.module_from_spec(spec)
spec.loader.exec_module(module)
from panglot_worker.dialects.megflow.alone import main
code = main(work)
import os
os._exit(code)
"""


def run(package: Package, settings: Settings) -> int:
    """Run it to its end. Raises LoadError when it cannot be loaded."""
    with tempfile.TemporaryDirectory(prefix="panglot-") as folder:
        request = {**package.for_worker(), "settings": settings.for_worker()}
        Path(folder, "request.json").write_text(json.dumps(request))
        command = [settings.python or sys.executable, "-c", LOADER, worker_folder(), folder]
        try:
            code = subprocess.run(command, env={**os.environ, **package.environment}, check=False).returncode
        except KeyboardInterrupt:
            return 0
        failure = Path(folder, "failure.json")
        if failure.is_file():
            why = json.loads(failure.read_text())
            raise LoadError(
                why["problem"], file=why["file"], line=why["line"], fix=why["fix"], traceback=why["traceback"]
            )
    return code if code >= 0 else 128 - code
