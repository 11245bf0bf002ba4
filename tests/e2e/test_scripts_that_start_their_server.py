"""Scripts that end by starting their platform's server are run as `python script.py` runs them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.distributions import DISTRIBUTIONS, install
from support.server import ROOT, Server, serving

BENCH = """
import multiprocessing
import os
import pickle
import sys

import beside
import workshop


class Point:
    def __init__(self, x):
        self.x = x


def doubled(point):
    return Point(2 * point.x)


def handler(value):
    if value.get("method"):
        with multiprocessing.get_context(value["method"]).Pool(1) as pool:
            return {"doubled": pool.map(doubled, [Point(4)])[0].x}
    return {
        "name": __name__,
        "main": sys.modules["__main__"].__dict__ is globals(),
        "file": __file__,
        "argv": sys.argv,
        "cwd": os.getcwd(),
        "beside": beside.VALUE,
        "pickled": pickle.loads(pickle.dumps(Point(3))).x,
        "version": workshop.VERSION,
    }


try:
    workshop.start({"handler": handler})
except Exception:
    raise SystemError("an exception of ours is none of the script's")
"""


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    folder = tmp_path_factory.mktemp("workshop")
    install(DISTRIBUTIONS / "workshop", folder / "outside")

    def package(name: str, script: str) -> Path:
        (folder / name / "src").mkdir(parents=True)
        (folder / name / "src" / "bench.py").write_text(script)
        (folder / name / "src" / "beside.py").write_text("VALUE = 'in its own folder'\n")
        return folder / name

    return package


def path_of(package: Path, *more: Path) -> dict[str, str]:
    return {"PYTHONPATH": ":".join(map(str, (package.parent / "outside", *more)))}


@pytest.fixture(scope="module")
def server(packages: Callable[..., Path]) -> Iterator[Server]:
    package = packages("started", BENCH)
    with serving(package, "--workers", "1", env=path_of(package)) as server:
        yield server


def work(server: Server, **order: Any) -> Any:
    response = server.client.post("/work", json=order)
    assert response.status_code == 200, response.text
    return response.json()["output"]


def test_the_script_is_the_real_main_module(server: Server) -> None:
    seen = work(server)
    assert (seen["name"], seen["main"], seen["pickled"]) == ("__main__", True, 3)


def test_the_script_has_its_arguments_its_folder_and_what_lies_beside_it(server: Server) -> None:
    seen = work(server)
    assert seen["argv"] == [seen["file"]]
    assert seen["file"] == f"{seen['cwd']}/src/bench.py"
    assert seen["beside"] == "in its own folder"


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_processes_that_the_script_starts_know_its_functions(server: Server, method: str) -> None:
    assert work(server, method=method) == {"doubled": 8}


def test_the_shim_stands_in_where_the_platforms_package_is_absent(server: Server) -> None:
    assert work(server)["version"] == "shim"


def test_the_platforms_own_package_is_used_where_it_is_installed(packages: Callable[..., Path], tmp_path: Path) -> None:
    (tmp_path / "workshop.py").write_text("VERSION = 'installed'\n\ndef start(config):\n    raise OSError('blocks')\n")
    package = packages("installed", BENCH)
    with serving(package, "--workers", "1", env=path_of(package, tmp_path)) as server:
        assert work(server)["version"] == "installed"


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("import workshop\n", "the script ends without calling workshop.start({...})"),
        ("import workshop\nprint(undefined)\n", "NameError: name 'undefined' is not defined"),
        ("import workshop\nimport sys\nsys.exit(4)\n", "the script ended the process with exit code 4"),
        ("import workshop\nworkshop.start(\n", "syntax error"),
    ],
    ids=["no start", "raises", "exits", "no Python"],
)
def test_a_script_that_does_not_start_its_server_fails_to_load(
    packages: Callable[..., Path], script: str, message: str, request: pytest.FixtureRequest
) -> None:
    package = packages(request.node.callspec.id.replace(" ", "_"), script)
    ended = subprocess.run(
        [sys.executable, "-m", "panglot", "serve", str(package), "--dialect", "workshop", "--port", "0"],
        env=path_of(package), capture_output=True, text=True, timeout=60, check=False, cwd=ROOT,
    )  # fmt: skip
    assert ended.returncode == 3, ended.stderr
    assert message in ended.stderr
    assert "bench.py" in ended.stderr


ALONE = """
import sys, threading
sys.path.insert(0, {source!r})
from panglot_worker.scripts import as_main
main = as_main.run(sys.argv[1], "start()")
print(main.handed, main.module.__dict__.get("after", "no more"))
"""


@pytest.mark.parametrize(
    ("script", "seen"),
    [
        ("as_main.hand_over(1)\nafter = 'more'\n", "1 no more"),
        ("as_main.hand_over(1, returns=True)\nafter = 'more'\n", "1 more"),
        ("as_main.hand_over(1, returns=True)\nafter = 'more'\nraise OSError\n", "1 more"),
        ("try:\n    as_main.hand_over(1)\nexcept:\n    after = 'more'\n", "1 more"),
        ("import sys\nsys.exit(as_main.hand_over(1))\n", "1 no more"),
        (
            "import threading\nthread = threading.Thread(target=as_main.hand_over, args=(1,))\n"
            "thread.start()\nthread.join()\nafter = 'more'\n",
            "1 more",
        ),
        (
            "import asyncio\nasync def main():\n    as_main.hand_over(1)\nasyncio.run(main())\nafter = 'more'\n",
            "1 no more",
        ),
    ],
    ids=["ends", "returns", "raises later", "bare except", "exit", "thread", "event loop"],
)
def test_the_run_ends_when_the_server_is_started(tmp_path: Path, script: str, seen: str) -> None:
    (tmp_path / "main.py").write_text("from panglot_worker.scripts import as_main\n" + script)
    command = [sys.executable, "-c", ALONE.format(source=str(ROOT / "src")), str(tmp_path / "main.py")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout.strip(), ended.stderr) == (0, seen, "")
