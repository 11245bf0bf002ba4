"""Scripts of every dialect may import what lies beside them with dots: `from . import acts`."""

from __future__ import annotations

from pathlib import Path

import pytest

from contract.desk import Opener, unpack
from contract.platform import Platform
from contract.table import PLATFORMS
from support.server import panglot, serving

WITHOUT = ("bare", "mlflow")
"""Those without a script, and those whose script is imported by the platform's own library, which knows no dots."""
WITH_SCRIPTS = [platform for platform in PLATFORMS if platform.package not in WITHOUT]
HELPERS = "from .acts import act, act_all, load, wait_for\n"


@pytest.mark.parametrize("platform", WITH_SCRIPTS, ids=lambda platform: platform.name)
def test_a_script_imports_what_lies_beside_it_with_dots(platform: Platform, tmp_path: Path) -> None:
    unpack(platform, tmp_path)
    package = tmp_path / platform.package
    scripts = [file for file in package.rglob("*.py") if "import acts\n" in file.read_text()]
    assert scripts
    for script in scripts:
        (script.parent / "helpers.py").write_text(HELPERS)
        if script.parent != package:
            (package / "acts.py").rename(script.parent / "acts.py")
        script.write_text(script.read_text().replace("import acts\n", "from . import helpers as acts\n"))
    with Opener(platform, serving, tmp_path)() as desk:
        assert desk.right(3, desk.ask({"id": 3}))


MODEL = """
import logging
import multiprocessing
import os
import pickle

from . import net
from .parts import layers


def at_work(number):
    return net.twice(number), os.getpid()


def predict(request):
    context = multiprocessing.get_context(request["start"])
    with context.Pool(1) as pool:
        number, pid = pool.apply(at_work, (request["number"],))
    import model

    return {
        "number": number,
        "elsewhere": pid != os.getpid(),
        "deep": layers.deepest(1),
        "same": model.at_work is at_work,
        "whose": pickle.loads(pickle.dumps(net.Net())).__class__ is net.Net,
    }
"""
NET = "FACTOR = 2\n\n\ndef twice(number):\n    return FACTOR * number\n\n\nclass Net:\n    pass\n"
LAYERS = (
    "from ..net import twice\nfrom .deep import deeper\n\n\ndef deepest(number):\n    return twice(deeper(number))\n"
)
DEEP = "def deeper(number):\n    return 10 * number\n"


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        file = folder / (name.replace("__", "/") + ".py")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return folder


@pytest.mark.parametrize("name", ["family", "my-model", "model", "json"])
def test_its_processes_and_pickles_find_it_too(name: str, tmp_path: Path) -> None:
    """Whatever the folder is called: a name no module has, or the name of the script, or of another module."""
    folder = write(tmp_path / "several" / name, model=MODEL, net=NET, parts__layers=LAYERS, parts__deep=DEEP)
    expected = {"number": 42, "elsewhere": True, "deep": 20, "same": True, "whose": True}
    with serving(folder) as server:
        for start in ("spawn", "fork"):
            assert server.predict({"start": start, "number": 21}).json() == expected, server.log


def test_a_folder_whose_name_no_module_can_have(tmp_path: Path) -> None:
    """`model-1.2` has a dot in it, so processes that start anew do not find the script; all else works."""
    folder = write(tmp_path / "model-1.2", model=MODEL, net=NET, parts__layers=LAYERS, parts__deep=DEEP)
    with serving(folder) as server:
        answer = server.predict({"start": "fork", "number": 21}).json()
        assert (answer["number"], answer["same"], answer["deep"]) == (42, True, 20), server.log


def test_what_is_not_beside_the_script_is_named(tmp_path: Path) -> None:
    folder = write(tmp_path / "family", model="from .nett import Net\n\n\ndef predict(x):\n    return x\n", net=NET)
    done = panglot("serve", str(folder), "--port", "0")
    assert done.returncode == 3
    last = done.stderr.strip().splitlines()[-1]
    assert "model.py:1: " in last
    assert "there is no module nett in " in last
    assert "not installed" not in last


def test_a_package_that_is_installed_keeps_its_name(tmp_path: Path) -> None:
    """A folder called numpy does not stand in the way of numpy."""
    script = (
        "import numpy\n\nfrom .net import twice\n\n\ndef predict(x):\n    return [twice(x), int(numpy.ones(3).sum())]\n"
    )
    folder = write(tmp_path / "numpy", model=script, net=NET)
    with serving(folder) as server:
        assert server.predict(4).json() == [8, 3]
