"""The wheel that `panglot package` writes is the one a build would make, wherever Panglot runs from."""

from __future__ import annotations

import email
import email.message
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from panglot.tools.package import wheel
from support import environments
from support.server import PACKAGES, ROOT


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("ours") / wheel.NAME
    file.write_bytes(wheel.build())
    return file


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what a build needs."""
    folder = tmp_path_factory.mktemp("source")
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("*.egg-info", "__pycache__", ".*"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    return folder


@pytest.fixture(scope="module")
def built(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that setuptools makes."""
    folder = tmp_path_factory.mktemp("built")
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(folder)]
    run([*command, str(source)])
    return next(folder.glob("*.whl"))


def run(command: list[str], **env: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **env})
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def contents(file: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(file) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def about(file: Path) -> email.message.Message:
    return email.message_from_bytes(contents(file)[f"{wheel.ABOUT}/METADATA"])


def test_it_holds_what_a_build_puts_in(ours: Path, built: Path) -> None:
    mine, theirs = contents(ours), contents(built)
    modules = {name: body for name, body in theirs.items() if ".dist-info/" not in name}
    assert {name: body for name, body in mine.items() if ".dist-info/" not in name} == modules
    assert {name for name in theirs if not name.endswith("top_level.txt")} == set(mine)
    assert ours.name == built.name


def test_it_says_of_itself_what_a_build_says(ours: Path, built: Path) -> None:
    mine, theirs = about(ours), about(built)
    for field in ("Name", "Version", "Summary", "Requires-Python", "License-Expression", "License-File"):
        assert mine[field] == theirs[field], field
    for field in ("Requires-Dist", "Provides-Extra"):
        assert sorted(mine.get_all(field, [])) == sorted(theirs.get_all(field, [])), field
    points = [contents(file)[f"{wheel.ABOUT}/entry_points.txt"] for file in (ours, built)]
    assert sorted(points[0].split()) == sorted(points[1].split())


def test_the_same_files_give_the_same_bytes(ours: Path) -> None:
    assert wheel.build() == ours.read_bytes()
    assert wheel.is_ours(ours)


PACKAGE = "import sys; from panglot.tools.package import wheel; sys.stdout.buffer.write(wheel.build())"


@pytest.mark.timeout(300)
@pytest.mark.parametrize("way", ["built", "editable", "bare"])
def test_wherever_panglot_runs_from(way: str, source: Path, built: Path, ours: Path, tmp_path: Path) -> None:
    """Installed from the wheel of a build, installed as editable, and from sources on the path."""
    python = environments.fresh(tmp_path / "venv")
    given = {"built": [str(built)], "editable": ["-e", str(source)], "bare": []}[way]
    if given:
        environments.install(python, "--no-deps", *given)
    path = str(source / "src") if way == "bare" else ""
    (tmp_path / "made.whl").write_bytes(
        subprocess.run([python, "-c", PACKAGE], capture_output=True, check=True, env={"PYTHONPATH": path}).stdout
    )
    mine, theirs = contents(tmp_path / "made.whl"), contents(ours)
    if way == "built":
        # The text of the README comes along, and so does the order of a build.
        assert about(tmp_path / "made.whl").get_all("Provides-Extra") == about(built).get_all("Provides-Extra")
        for found in (mine, theirs):
            for name in ("METADATA", "entry_points.txt", "RECORD"):
                assert found.pop(f"{wheel.ABOUT}/{name}")
    assert mine == theirs


def test_a_copy_that_nobody_installed_is_told(source: Path, tmp_path: Path) -> None:
    shutil.copytree(source / "src", tmp_path / "lib" / "src")
    command = [sys.executable, "-S", "-m", "panglot", "package", str(PACKAGES / "function"), "--output", str(tmp_path)]
    sites = ":".join(path for path in sys.path if path.endswith("site-packages"))
    env = {"PYTHONPATH": f"{tmp_path}/lib/src:{sites}", "PATH": os.environ["PATH"]}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 3
    assert "neither installed nor is it a source checkout" in done.stderr
    assert not (tmp_path / "Dockerfile").exists()


@pytest.mark.timeout(300)
def test_extras_come_with_it(ours: Path, tmp_path: Path) -> None:
    """`panglot[video]` in a requirements file is this wheel, with its extra."""
    (tmp_path / "requirements.txt").write_text("panglot[video]\n")
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--report", "-", "-q"]
    done = run([*command, str(ours), "-r", str(tmp_path / "requirements.txt")])
    assert '"name": "av"' in done.stdout
    assert f"/{ours.name}" in done.stdout
