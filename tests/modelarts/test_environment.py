"""What the platform gave its scripts: the packages config.json asks for, and its paths."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.modelarts import NODE, config, package
from support.server import panglot, serving, wait_until
from support.wheels import wheel

SERVICE = NODE + "\n\nclass Service(SingleNodeService):\n    pass\n"


def inspected(folder: Path) -> dict[str, Any]:
    done = panglot("inspect", str(folder), "--json")
    assert done.returncode == 0, done.stderr
    facts: dict[str, Any] = json.loads(done.stdout)
    return facts


def dependencies(*packages: tuple[str, str, str], installer: str = "pip") -> list[dict[str, Any]]:
    keys = ("package_name", "package_version", "restraint")
    return [{"installer": installer, "packages": [dict(zip(keys, entry, strict=True)) for entry in packages]}]


def test_dependencies_are_shown_as_pip_commands_in_order(tmp_path: Path) -> None:
    first = dependencies(("Cython", "0.29", "EXACT"), ("numpy", "1.15.0", "ATLEAST"), ("h5py", "2.8", "ATMOST"))
    second = dependencies(("pillow", "", ""), ("odd", "1.0", "ABOUT"), ("--index-url=http://x", "", ""), ("", "", ""))
    third = dependencies(("libgomp", "", ""), installer="apt-get")
    name = wheel(tmp_path, "own_thing", "1.0", "")
    fourth = dependencies((name, "", ""))
    package(tmp_path, SERVICE, config("MindSpore", dependencies=[*first, *second, *third, *fourth]))
    (tmp_path / "requirements.txt").write_text("# nothing\nrequests\n")
    facts = inspected(tmp_path)
    assert facts["install"] == [
        "pip install Cython==0.29",
        "pip install 'numpy>=1.15.0'",
        "pip install 'h5py<=2.8'",
        "pip install pillow",
        "pip install odd==1.0",
        f"pip install ./{name}",
        "pip install -r requirements.txt",
    ]
    told = "\n".join(facts["problems"])
    for words in (
        "restraint 'ABOUT'",
        "'--index-url=http://x' is no package",
        "libgomp by apt-get",
        "without package_n",
    ):
        assert words in told
    shown = panglot("inspect", str(tmp_path)).stdout
    assert "pip install 'numpy>=1.15.0'" in shown


@pytest.mark.document("modelarts.24")
def test_install_makes_a_cached_environment_and_runs_there(tmp_path: Path) -> None:
    name = wheel(tmp_path / "p", "own_thing", "1.0", "VALUE = 'installed'\n")
    script = (
        NODE
        + """
import own_thing
import numpy
import sys


class Service(SingleNodeService):
    def _inference(self, data):
        return [own_thing.VALUE, numpy.__name__, sys.executable]
"""
    )
    package(tmp_path / "p", script, config("MindSpore", dependencies=dependencies((name, "", ""))))
    env = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "PIP_NO_INDEX": "1"}
    done = panglot("serve", str(tmp_path / "p"), "--port", "0", env=env)
    assert (done.returncode, "the package 'own_thing' is not installed" in done.stderr) == (3, True)
    for first in (True, False):
        with serving(tmp_path / "p", "--install", env=env) as server:
            value, other, python = server.client.post("/", json={"a": 1}).json()
            assert (value, other) == ("installed", "numpy"), "what the interpreter had is still there"
            assert python.startswith(str(tmp_path / "cache" / "panglot" / "environments" / "p-"))
        assert (f"pip install ./{name}" in server.log) is first


def test_another_list_another_file_or_another_interpreter_is_another_environment(tmp_path: Path) -> None:
    from panglot.dialects import discover
    from panglot.packages.requirements import wish
    from panglot_worker.life.installing import environment_name

    names = []
    for code, version, python in (("1", "1.0", "a"), ("2", "1.0", "a"), ("2", "1.1", "a"), ("2", "1.1", "b")):
        name = wheel(tmp_path, "own_thing", version, f"VALUE = {code}\n")
        package(tmp_path, SERVICE, config("MindSpore", dependencies=dependencies((name, "", ""))))
        found = discover(tmp_path)
        names.append(environment_name(wish(found), python, "3.11"))
    assert len(set(names)) == 4


def test_install_works_for_every_dialect(tmp_path: Path) -> None:
    name = wheel(tmp_path, "own_thing", "2.0", "VALUE = 'plain'\n")
    (tmp_path / "model.py").write_text("import own_thing\n\n\ndef predict(request):\n    return own_thing.VALUE\n")
    (tmp_path / "requirements.txt").write_text(f"./{name}\n")
    env = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "PIP_NO_INDEX": "1"}
    with serving(tmp_path, "--install", env=env) as server:
        assert server.predict(1).json() == "plain"


def test_an_installation_that_fails_is_told_in_one_line(tmp_path: Path) -> None:
    missing = dependencies(("no-such-package-anywhere", "1.0", "EXACT"))
    package(tmp_path, SERVICE, config("MindSpore", dependencies=missing))
    env = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "PIP_NO_INDEX": "1"}
    done = panglot("serve", str(tmp_path), "--port", "0", "--install", env=env)
    assert done.returncode == 3
    last = done.stderr.strip().splitlines()[-1]
    assert "pip install no-such-package-anywhere==1.0 failed: No matching distribution found" in last
    done = panglot("serve", str(tmp_path), "--port", "0", "--install", "--inline", env=env)
    assert (done.returncode, "leave out --inline or --install" in done.stderr) == (3, True)


# Paths of the platform


def test_hard_coded_paths_are_named_and_linked_on_demand(tmp_path: Path) -> None:
    script = (
        NODE
        + """
import os

LABELS = os.path.join("/home/mind/model/1", "labels.txt")


class Service(SingleNodeService):
    def _inference(self, data):
        found = []
        for path in (LABELS, "/home/mind/model/labels.txt", "/home/ma-user/infer/model/1/labels.txt"):
            if os.path.exists(path):
                with open(path) as file:
                    found.append(file.read())
        return found
"""
    )
    package(tmp_path / "p" / "model", script, config("MindSpore"), labels__txt="cat")
    facts = inspected(tmp_path / "p")
    assert facts["fixed_paths"] == [
        "customize_service.py:5: /home/mind/model/1",
        "customize_service.py:11: /home/mind/model/labels.txt",
        "customize_service.py:11: /home/ma-user/infer/model/1/labels.txt",
    ]
    if Path("/home/mind").exists() or not os.access("/home", os.W_OK):
        pytest.skip("/home/mind is there already, or /home is not ours to write to")
    with serving(tmp_path / "p") as server:
        server.wait_log("customize_service.py:5 uses /home/mind/model/1, a path of the platform; --link-paths makes")
        assert server.client.post("/", json={"a": 1}).json() == []
    with serving(tmp_path / "p", "--link-paths") as server:
        assert server.client.post("/", json={"a": 1}).json() == ["cat", "cat", "cat"]
        done = panglot("serve", str(tmp_path / "p"), "--port", "0", "--link-paths")
        assert (done.returncode, "/home/mind/model leads to" in done.stderr) == (3, True)
        server.process.kill()
        server.process.wait()
    assert "a path of the platform" not in server.log
    assert Path("/home/mind/model").is_symlink(), "a killed server leaves its links behind"
    folder, env = Path(f"--models={tmp_path}"), {"PANGLOT_ADMIN_TOKEN": "control"}
    with serving(folder, "--link-paths", "--admin", env=env) as server:
        assert server.client.post("/models/p/", json={"a": 1}).json() == ["cat", "cat", "cat"]
        (tmp_path / "p" / "model" / "labels.txt").write_text("dog")
        load = f"{server.url}/v2/repository/models/p/load"
        loaded = httpx.post(load, headers={"authorization": "Bearer control"}, timeout=60)
        assert (loaded.status_code, loaded.text) == (200, "{}"), "the new one takes the links of the old one over"
        wait_until(lambda: len(server.workers()) == 1)
        assert server.client.post("/models/p/", json={"a": 1}).json() == ["dog", "dog", "dog"]
    left = [path for path in ("/home/mind/model", "/home/ma-user/infer/model") if Path(path).exists()]
    assert not left, "and the next one replaces and removes them"
    for folder in ("/home/mind", "/home/ma-user/infer", "/home/ma-user"):
        if Path(folder).is_dir() and not any(Path(folder).iterdir()):
            Path(folder).rmdir()
