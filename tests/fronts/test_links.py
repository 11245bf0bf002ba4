"""`--link-paths` with several fronts: the first front makes the links and has the workers that use them."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import httpx
import pytest

from support.fronts import client_of, pid_of, pids, status_of
from support.server import Server, panglot, serving, wait_until

FRONTS = ("--workers", "2", "--fronts", "2", "--restart-delay", "0.1")
HANDLER = """
import runpod

with open("{root}/labels.txt") as file:
    labels = file.read()


def handler(job):
    with open("{root}/labels.txt") as file:
        return [labels, file.read()]


runpod.serverless.start({{"handler": handler}})
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The folder that the package has in its image."""
    return tmp_path / "image" / "src"


@pytest.fixture
def package(tmp_path: Path, root: Path) -> Path:
    folder = tmp_path / "package"
    folder.mkdir()
    (folder / "handler.py").write_text(HANDLER.format(root=root))
    (folder / "labels.txt").write_text("dog")
    (folder / "Dockerfile").write_text(f'FROM x\nWORKDIR {root}\nCMD ["python", "-u", "handler.py"]\n')
    return folder


def output(client: httpx.Client) -> object:
    return client.post("/runsync", json={"input": {"x": 1}}, timeout=60).json().get("output")


def test_scripts_find_their_files_whichever_front_is_asked(package: Path, root: Path) -> None:
    with serving(package, *FRONTS, "--link-paths") as server:
        assert (len(server.fronts()), len(server.workers())) == (2, 2)
        for front in (0, 1):
            assert output(client_of(server, front)) == ["dog", "dog"]
        server.wait_log(f"{root} leads to")
        assert server.log.count(f"{root} leads to") == 1
        assert {worker["front"] for worker in status_of(server)["workers"]} == {0}
    assert not os.path.lexists(root)
    assert not root.parent.exists()


@pytest.mark.parametrize("victim", [0, 1])
def test_the_links_are_there_again_after_the_death_of_a_front(package: Path, root: Path, victim: int) -> None:
    with serving(package, *FRONTS, "--link-paths") as server:
        survivor = client_of(server, 1 - victim)
        kill(server, victim)
        assert output(survivor) == ["dog", "dog"]
        assert output(client_of(server, victim)) == ["dog", "dog"]
        assert len(server.workers()) == 2
    assert not os.path.lexists(root)


def test_a_path_that_is_there_ends_the_start_and_is_told_once(package: Path, root: Path) -> None:
    root.mkdir(parents=True)
    done = panglot("serve", str(package), "--port", "0", *FRONTS, "--link-paths")
    assert done.returncode == 3
    assert done.stderr.count(f"{root} is there already (fix: remove it, or serve without --link-paths)") == 1
    assert "while it drained" not in done.stderr
    assert root.is_dir()


def test_without_links_the_path_is_named_once_with_the_lines_that_use_it(package: Path, root: Path) -> None:
    root.mkdir(parents=True)
    (root / "labels.txt").write_text("cat")
    with serving(package, *FRONTS) as server:
        assert output(server.client) == ["cat", "cat"]
        server.wait_log("a path of the platform")
        assert server.log.count(f"--link-paths makes {root} lead to this package (used at handler.py:9 too)") == 1
        assert server.log.count(f"handler.py:4 uses {root}/labels.txt, a path of the platform;") == 1
        assert server.log.count("a path of the platform") == 1


def test_of_many_lines_that_use_a_path_the_first_are_named(package: Path, root: Path) -> None:
    root.mkdir(parents=True)
    (root / "labels.txt").write_text("cat")
    uses = "".join(f'PATH{number} = "{root}/{number}"\n' for number in range(6))
    (package / "handler.py").write_text(uses + (package / "handler.py").read_text())
    with serving(package) as server:
        server.wait_log("a path of the platform")
        assert f"handler.py:1 uses {root}/0, a path of the platform;" in server.log
        places = "handler.py:2, handler.py:3, handler.py:4, 4 more"
        assert f"{root} lead to this package (used at {places} too)" in server.log
        assert server.log.count("a path of the platform") == 1


def kill(server: Server, front: int) -> None:
    """End a front, and wait until its successor serves."""
    before = pid_of(server, front)
    os.kill(before, signal.SIGKILL)
    wait_until(lambda: pids(server).get(front, before) != before, 60)
    wait_until(lambda: server.metric("panglot_fronts", state="answering") == 2, 60)
    wait_until(lambda: len(server.workers()) == 2, 60)
