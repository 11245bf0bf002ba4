"""A graph without a server node: run to its end in a process of its own, with nothing between it and the terminal."""

from __future__ import annotations

import json
import os
import sys
import traceback
from typing import Any

from panglot_worker.compat import pictures
from panglot_worker.dialects.base import Package
from panglot_worker.dialects.megflow.graph import plugins
from panglot_worker.dialects.megflow.graph.runtime import Runtime, failed_calls
from panglot_worker.dialects.megflow.video import images
from panglot_worker.errors import ScriptError
from panglot_worker.graphs import configuration
from panglot_worker.graphs.errors import GraphError
from panglot_worker.scripts import loading, whole_lines


def main(folder: str) -> None:
    """Entry point of the process, from its command line: run the package in the folder, and exit with its code."""
    whole_lines.install()
    try:
        code = run(folder)
    except BaseException:
        traceback.print_exc()
        code = 1
    whole_lines.finish()
    # Threads of the graph's plugins must not keep a process that is done.
    os._exit(code)


def run(folder: str) -> int:
    """Run the package in `request.json` of the folder; returns the exit code. `failure.json` gets a failed load."""
    with open(os.path.join(folder, "request.json"), encoding="utf-8") as source:
        package = Package(**json.load(source))
    doing = "loading"

    def progress(step: str) -> None:
        nonlocal doing
        doing = step

    try:
        runtime = start(package, progress)
    except BaseException as error:
        failure = loading.as_dict(loading.explain(as_script_error(error), package, doing))
        with open(os.path.join(folder, "failure.json"), "w", encoding="utf-8") as target:
            json.dump(failure, target)
        return 3
    try:
        runtime.wait()
    except KeyboardInterrupt:
        # The user ends an endless graph this way.
        return 0
    if runtime.reason:
        print(runtime.reason, file=sys.stderr)
    if runtime.failures:
        print(failed_calls(runtime.failures), file=sys.stderr)
    return 1 if runtime.failures or runtime.reason else 0


def start(package: Package, progress: Any) -> Runtime:
    """Load a package's plugins and start its graph. Raises GraphError, and whatever the plugins raise."""
    options = package.options
    pixels = int(package.settings.get("max_pixels", 40_000_000))
    pictures.limit(pixels)
    images.limit(pixels)
    loading.enter(package)
    os.chdir(options["working"])
    plugins.load(options["plugin"], options["module"], progress)
    runtime = Runtime(configuration.from_json(options["config"]), plugins.known_classes(), failed, skipped)
    runtime.settings = package.settings
    runtime.start(open_inputs=False, progress=progress)
    return runtime


def as_script_error(error: BaseException) -> BaseException:
    if isinstance(error, GraphError):
        return ScriptError(error.problem, error.file, error.line, error.fix)
    return error


def failed(node: str, error: BaseException) -> None:
    """Print the traceback of a node, in one write, so that no other output lands in the middle."""
    sys.stderr.write("node '%s' failed:\n%s" % (node, loading.script_traceback(error)))


def skipped(node: str, what: str) -> None:
    print("node '%s' left out %s" % (node, what), file=sys.stderr)
