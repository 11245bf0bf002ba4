"""`--install` on nodes: what the package asks for is installed there, once, and its output is in the log."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import pytest

from support.ray_cluster import RayCluster
from support.server import panglot, serving, wait_until
from support.traffic import ask_all

pytestmark = pytest.mark.timeout(400)
SCRIPT = """
import sys
import own_thing

print("loaded with", own_thing.VALUE)


def predict(value):
    return [own_thing.VALUE, sys.executable]
"""


def wheel(folder: Path, name: str, code: str) -> str:
    """A wheel with one module, as small as it may be."""
    file = folder / f"{name}-1.0-py3-none-any.whl"
    about = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(f"{name}.py", code)
        archive.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(
            f"{about}/WHEEL", "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{about}/RECORD", f"{name}.py,,\n{about}/METADATA,,\n{about}/WHEEL,,\n{about}/RECORD,,\n")
    return file.name


def test_it_is_installed_once_for_all_workers(inside: RayCluster, tmp_path: Path) -> None:
    """By the requirements.txt beside the folder called model, as one platform has it; encrypted, as a harder case."""
    package = tmp_path / "model"
    package.mkdir()
    (package / "model.py").write_text(SCRIPT)
    file = wheel(tmp_path, "own_thing", "VALUE = 'installed'\n")
    (tmp_path / "requirements.txt").write_text(f"--no-index\n{tmp_path / file}\n")
    with serving(package, *inside.flags, "--install", "--ray-tls", "--workers", "2", ready=False) as server:
        server.wait_ready(240)
        wait_until(lambda: server.metric("panglot_workers", state="ready") == 2, 120, lambda: server.log)
        answers = [answer.json() for answer in ask_all(server, [1] * 8, 60)]
        assert {value for value, _ in answers} == {"installed"}
        assert all(python.startswith(f"{inside.cache}/panglot/environments/model-") for _, python in answers)
    assert len(re.findall(r"\| making an environment for model in ", server.log)) == 1
    assert len(re.findall(r"\| pip install -r \.\./requirements\.txt", server.log)) == 1
    assert len(re.findall(r"\| loaded with installed", server.log)) == 2


def test_what_cannot_be_installed_ends_the_server_with_a_line(inside: RayCluster, tmp_path: Path) -> None:
    """By an interpreter of the nodes that makes no environments, as some distributions have it."""
    package = tmp_path / "package"
    package.mkdir()
    (package / "model.py").write_text(SCRIPT)
    (package / "requirements.txt").write_text("--no-index\nown-thing\n")
    python = tmp_path / "python"
    python.write_text(
        f'#!/bin/sh\ncase "$*" in *"-m venv"*) echo "ensurepip is not available" >&2; exit 1;; esac\n'
        f'exec {inside.python} "$@"\n'
    )
    python.chmod(0o755)
    flags = ("--install", "--python", str(python))
    done = panglot("serve", str(package), "--port", "0", *inside.flags, *flags, seconds=240)
    assert done.returncode == 3
    last = done.stderr.strip().splitlines()[-1]
    assert "a virtual environment cannot be made: ensurepip is not available" in last
    assert "on node " in last
