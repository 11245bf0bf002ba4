"""Processes that a script starts find `evals` and the script's helpers, as PYTHONPATH let them on the platform."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.evals import package, result, single
from support.server import serving

SCRIPT = """
import json
import multiprocessing
import os
import subprocess
import sys

from evals.utils import *


def in_a_child(number):
    from evals import config

    return [number * config.FACTOR, os.getpid()]


@create_net_handler
def create_net(configs):
    return {}, 0, ""


@net_inference_handler
def net_inference(model, reqs):
    params = reqs[0]["params"]
    if params["how"] == "spawn":
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            number, pid = pool.apply(in_a_child, (params["number"],))
        told = [number, pid != os.getpid()]
    else:
        told = json.loads(subprocess.check_output([sys.executable, os.environ["TOOL"], str(params["number"])]))
    return [{"result": told}], 0, ""
"""
TOOL = """
import json
import sys

import evals.eval
from evals import config
from evals.utils import value_check
from evals.utils.error import ErrorBase

number = value_check({"number": int(sys.argv[1])}, "number")
print(json.dumps([number * config.FACTOR, issubclass(ErrorBase, Exception) and callable(evals.eval.in_a_child)]))
"""
FRAMEWORK = "raise RuntimeError('not ours')\n\n\ndef create_net_handler(function):\n    pass\n"
"""The platform's own copy, which lay beside scripts and is for Python 2."""


@pytest.mark.document("evals.42b")
@pytest.mark.parametrize("layout", ["beside", "image"])
def test_processes_of_a_script_import_what_it_imports(layout: str, tmp_path: Path) -> None:
    folder = tmp_path / "package" / ("python/evals" if layout == "image" else "")
    package(folder, SCRIPT, config__py="FACTOR = 2\n")
    (folder / "utils").mkdir()
    (folder / "utils" / "__init__.py").write_text(FRAMEWORK)
    tool = tmp_path / "tool.py"
    tool.write_text(TOOL)
    with serving(tmp_path / "package", env={"TOOL": str(tool)}) as server:
        for how in ("program", "spawn"):
            assert result(server, single(params={"how": how, "number": 21})) == [42, True], server.log


def test_what_was_on_the_path_stays_there(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "company_tools.py").write_text("NAME = 'tools of the company'\n")
    script = SCRIPT.replace("    params = reqs", "    import company_tools\n    params = reqs")
    folder = package(tmp_path / "package", script, config__py="FACTOR = 2\n")
    tool = tmp_path / "tool.py"
    tool.write_text("import company_tools\n" + TOOL)
    env = {"TOOL": str(tool), "PYTHONPATH": str(tmp_path / "lib")}
    with serving(folder, env=env) as server:
        assert result(server, single(params={"how": "program", "number": 4})) == [8, True], server.log
