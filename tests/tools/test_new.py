"""`panglot new`: what it writes is served at once and answers its own example."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from panglot import dialects
from panglot.dialects.base import ENDING
from panglot.settings.counts import SINGLE
from panglot.settings.resolving import SettingsScope, read_toml
from panglot.tools import scaffold
from support import interpreters
from support.server import panglot, serving

PLAIN = scaffold.planned("plain", Path())[0]

VERSIONS = interpreters.found()
PYTHONS = {"default": "", "oldest": next(iter(VERSIONS.values()), "")}
EXPECTED = {"label": "friendly", "score": 0.9478}


def new(folder: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    return panglot("new", "plain", str(folder), *flags)


@pytest.mark.parametrize("python", PYTHONS.values(), ids=PYTHONS.keys())
def test_the_new_package_answers_its_own_example(tmp_path: Path, python: str) -> None:
    folder = tmp_path / "deep" / "own"
    done = new(folder)
    assert done.returncode == 0, done.stderr
    with serving(folder, *(["--python", python] if python else [])) as server:
        content = server.client.get("/openapi.json").json()["paths"]["/predict"]["post"]["requestBody"]["content"]
        example = content["application/json"]["example"]
        assert json.loads((folder / "request.json").read_text()) == example
        assert content["application/json"]["schema"]["anyOf"][0]["properties"] == {"text": {"type": "string"}}
        assert server.predict(example).json() == EXPECTED
        assert server.predict({"text": "I hate this"}).json()["label"] == "unfriendly"
        assert server.predict({"words": 1}).status_code == 422
        assert server.predict(["no object"]).status_code == 422


def test_it_needs_nothing_but_the_standard_library(tmp_path: Path) -> None:
    new(tmp_path)
    text = (tmp_path / "model.py").read_text()
    imported = set(re.findall(r"^(?:import|from) (\w+)", text, re.MULTILINE))
    assert imported <= sys.stdlib_module_names | {"panglot"}
    assert all(line.startswith("#") for line in (tmp_path / "requirements.txt").read_text().splitlines())


def test_it_prints_the_files_and_the_next_two_commands(tmp_path: Path) -> None:
    folder = tmp_path / "with space"
    done = new(folder)
    assert {path.name for path in folder.iterdir()} == set(PLAIN.files)
    for name in PLAIN.files:
        assert str(folder / name) in done.stdout
    serve, call = done.stdout.strip().splitlines()[-2:]
    assert shlex.split(serve) == ["panglot", "serve", str(folder)]
    assert shlex.split(call)[:5] == ["curl", "-H", "Content-Type: application/json", "-d", f"@{folder}/request.json"]


def test_the_commands_of_its_readme_are_true(tmp_path: Path) -> None:
    new(tmp_path)
    text = (tmp_path / "README.md").read_text()
    assert "panglot serve ." in text
    assert json.dumps(EXPECTED, separators=(",", ":")) in text
    assert "`model.py`" in text
    assert "`test_package.py`" in text


def test_every_setting_in_its_panglot_toml_is_one_and_shows_its_default(tmp_path: Path) -> None:
    new(tmp_path)
    lines = (tmp_path / "panglot.toml").read_text().splitlines()
    shown = [line.removeprefix("# ") for line in lines if re.match(r"# \w+ = ", line)]
    assert len(shown) > 8
    (tmp_path / "panglot.toml").write_text("\n".join(shown))
    from panglot.settings import Settings

    values = read_toml(tmp_path / "panglot.toml", SettingsScope())
    assert values.pop("workers") == SINGLE, "0 asks the script, which asks for none"
    assert values == {name: getattr(Settings(), name) for name in values}


def test_a_folder_that_is_not_empty_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("mine")
    done = new(tmp_path)
    assert done.returncode == 3
    assert done.stderr.count("\n") == 1
    assert "is not empty" in done.stderr
    assert "--force" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["model.py"]
    assert (tmp_path / "model.py").read_text() == "mine"


def test_force_writes_beside_other_files_and_never_through_a_link(tmp_path: Path) -> None:
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "other.txt").write_text("stays")
    outside = tmp_path / "outside.py"
    outside.write_text("precious")
    (folder / "model.py").symlink_to(outside)
    assert new(folder, "--force").returncode == 0
    assert (folder / "other.txt").read_text() == "stays"
    assert outside.read_text() == "precious"
    assert "class Model" in (folder / "model.py").read_text()


def test_what_cannot_be_written_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cases = [
        (["plain", str(tmp_path / "file")], "this is a file, not a folder"),
        (["plain", str(tmp_path / "file" / "inside")], "not a directory"),
        (["plian", str(tmp_path / "x")], "did you mean plain"),
        (["cobol", str(tmp_path / "x")], "use one of text, image"),
        (["plain"], "Missing argument 'DIR'"),
    ]
    for arguments, words in cases:
        done = panglot("new", *arguments)
        assert done.returncode == 3
        assert words.lower() in done.stderr.lower()
        assert done.stderr.count("\n") == 1
    assert os.listdir(tmp_path) == ["file"]


KINDS = [
    (name, kind)
    for name, dialect in dialects.known().items()
    if dialect.has("templates")
    for kind in dialect.load("templates").TEMPLATES
]


@pytest.mark.parametrize(("dialect", "kind"), KINDS)
def test_every_template_is_complete(dialect: str, kind: str) -> None:
    template, folder = scaffold.find(dialect, kind)
    there = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert there == {name + ENDING for name in template.files}
