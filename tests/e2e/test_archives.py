"""Packages that are archives: served as the folder in them would be."""

from __future__ import annotations

import io
import json
import shutil
import tarfile
from pathlib import Path

import pytest

from support.server import PACKAGES, panglot, serving

ECHO = "import os\n\ndef predict(x):\n    with open('beside.txt') as file:\n        return [x, file.read()]\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "echo"
    made.mkdir()
    (made / "model.py").write_text(ECHO)
    (made / "beside.txt").write_text("beside")
    (made / "panglot.toml").write_text("timeout = 17\n")
    return made


@pytest.mark.parametrize("kind", ["gztar", "zip"])
def test_an_archive_is_served_like_its_folder(kind: str, folder: Path, tmp_path: Path) -> None:
    archive = shutil.make_archive(str(tmp_path / "my-model"), kind, folder)
    home = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    with serving(archive, env=home) as server:
        assert server.predict(1).json() == [1, "beside"]
        assert server.client.get("/v2/models/my-model/ready").status_code == 200
    said = json.loads(panglot("inspect", archive, "--json", env=home).stdout)
    assert (said["package"], said["archive"]) == ("my-model", archive)
    assert Path(said["folder"]).parent == tmp_path / "cache" / "panglot" / "archives"
    assert said["settings"]["timeout"]["value"] == 17


def test_an_archive_is_no_folder_to_write_a_dockerfile_in(folder: Path, tmp_path: Path) -> None:
    archive = shutil.make_archive(str(tmp_path / "model"), "gztar", folder)
    said = panglot("package", archive, env={"XDG_CACHE_HOME": str(tmp_path / "cache")})
    assert said.returncode == 3
    assert "unpack it" in said.stderr


def test_a_hostile_archive_ends_the_start_with_a_sentence(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "model.tar.gz", "w:gz") as archive:
        archive.addfile(tarfile.TarInfo("../harm"), io.BytesIO())
    said = panglot("inspect", str(tmp_path / "model.tar.gz"), env={"XDG_CACHE_HOME": str(tmp_path / "cache")})
    assert said.returncode == 3
    assert said.stderr.startswith("error: ")
    assert "'../harm' leads outside of this archive" in said.stderr
    assert not (tmp_path / "harm").exists()


def test_a_dialect_may_be_named_for_an_archive(tmp_path: Path) -> None:
    archive = shutil.make_archive(str(tmp_path / "model"), "tar", PACKAGES / "answers")
    said = panglot("inspect", archive, "--dialect", "triton", env={"XDG_CACHE_HOME": str(tmp_path / "cache")})
    assert said.returncode == 3
    assert "this is no triton package" in said.stderr
