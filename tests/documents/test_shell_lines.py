"""The lines that the documentation shows as typed, and those that the tools print, work when they are typed."""

from __future__ import annotations

import shutil
from pathlib import Path

from panglot.tools.scaffold import create
from support.server import ROOT
from support.shell_lines import Ran, run_lines, typed

DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs" / "reference").glob("*.md"))]
KNOWN = {"README.md": 3, "tools.md": 7}
"""How many lines of each document are run below; a document that gets its first needs a place here."""


def lines_of(name: str) -> list[str]:
    return typed(next(path for path in DOCUMENTS if path.name == name).read_text())


def ran(lines: list[str], folder: Path, temporary: Path) -> list[Ran]:
    done = run_lines(lines, folder, temporary / "lines.sh")
    for line in done:
        assert line.code == 0, f"$ {line.line}\n{line.said}"
    return done


def test_every_line_that_is_shown_as_typed_is_run_here() -> None:
    assert {path.name: len(typed(path.read_text())) for path in DOCUMENTS if typed(path.read_text())} == KNOWN


def test_the_readme(tmp_path: Path) -> None:
    """Its first line needs the server of `make serve`, its others a package with the script above them."""
    ask, serve, ask_mine = lines_of("README.md")
    shutil.copytree(ROOT / "examples" / "digits", tmp_path / "examples" / "digits")
    (answer,) = ran(["panglot serve examples/digits", ask], tmp_path, tmp_path)[1:]
    assert '"digit":7' in answer.said
    package = tmp_path / "mine"
    package.mkdir()
    (package / "model.py").write_text("class Model:\n    def predict_batch(self, items):\n        return items\n")
    assert "[1,2,3]" in ran([serve, ask_mine], package, tmp_path)[1].said


def test_the_tools(tmp_path: Path) -> None:
    new, doctor, check, export, package, hostile, shims = lines_of("tools.md")
    done = ran([new, doctor, package], tmp_path, tmp_path)
    for line in ("greeter/model.py", "panglot serve greeter"):
        assert line in done[0].said
    assert "problem" not in done[1].said.splitlines()[-1] or "no problem" in done[1].said
    assert "kubernetes" in done[2].said
    (refused,) = run_lines([hostile], tmp_path, tmp_path / "lines.sh")
    assert refused.code == 3
    assert "error: " in refused.said
    create("tiinfer", tmp_path / "script", False, "")
    ran([shims], tmp_path / "script", tmp_path)
    paddle = tmp_path / "paddle"
    create("paddle", paddle, False, "")
    reference = "PYTHONPATH=$(panglot shims paddle) python predict.py"
    ran([export, "panglot run . images/demo.png --save served.npy", reference], paddle, tmp_path)
    (compared,) = run_lines([check], paddle, tmp_path / "lines.sh")
    assert compared.code in (0, 1), compared.said
    assert "agree" in compared.said or "differ" in compared.said


def test_the_page_on_videos_begins_with_lines_to_paste(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "reference" / "video.md").read_text()
    block = [line.partition("  #")[0].strip() for line in text.splitlines() if line.startswith("    ")][:5]
    done = ran([line.replace("DIR", "mine") for line in block], tmp_path, tmp_path)
    assert "data:" in done[4].said
