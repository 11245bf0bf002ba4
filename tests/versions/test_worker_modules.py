"""Every module of the worker can be compiled and imported by the oldest CPython that scripts run on."""

from __future__ import annotations

import subprocess

import pytest

from support import interpreters
from support.server import ROOT

SOURCE = ROOT / "src"
VERSIONS = interpreters.found()

COMPILE = """
import sys
for path in sys.stdin.read().splitlines():
    with open(path, "rb") as file:
        compile(file.read(), path, "exec", dont_inherit=True)
"""
IMPORT = """
import importlib, sys, warnings
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
warnings.simplefilter("error")
for name in sys.stdin.read().splitlines():
    importlib.import_module(name)
"""


@pytest.fixture(scope="module")
def oldest() -> str:
    wanted = "{}.{}".format(*interpreters.OLDEST)
    if wanted not in VERSIONS:
        pytest.skip(f"this machine has no CPython {wanted}")
    return VERSIONS[wanted]


def run(python: str, code: str, lines: list[str]) -> None:
    command = [python, "-I", "-c", code, str(SOURCE)]
    done = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]


def test_every_file_is_compiled(oldest: str) -> None:
    """Also those that scripts import, and those that no test reaches."""
    files = sorted(str(path) for path in (SOURCE / "panglot_worker").rglob("*.py"))
    assert len(files) > 200
    run(oldest, COMPILE, files)


def test_every_module_is_imported_with_the_standard_library_alone(oldest: str) -> None:
    """All but the modules of platforms, which only scripts import, and the hook that Python itself runs."""
    paths = [path.relative_to(SOURCE) for path in sorted((SOURCE / "panglot_worker").rglob("*.py"))]
    modules = [
        ".".join(path.with_suffix("").parts).removesuffix(".__init__")
        for path in paths
        if "platform" not in path.parts and "shims" not in path.parts and path.stem != "__main__"
    ]
    assert len(modules) > 200
    run(oldest, IMPORT, modules)
