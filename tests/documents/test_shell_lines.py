"""The lines of the pages on tools that are not run with the page, because they need Paddle or somebody who types."""

from __future__ import annotations

from pathlib import Path

import pytest

from panglot.tools.scaffold import create
from support.server import ROOT
from support.shell_lines import Ran, run_lines, typed


def ran(lines: list[str], folder: Path, temporary: Path) -> list[Ran]:
    done = run_lines(lines, folder, temporary / "lines.sh")
    for line in done:
        assert line.code == 0, f"$ {line.line}\n{line.said}"
    return done


@pytest.mark.rest("Paddle")
def test_the_tools(tmp_path: Path) -> None:
    pages = ROOT / "docs" / "reference"
    lines = typed((pages / "measuring.md").read_text() + (pages / "tools.md").read_text())
    check, export, shims = (
        line for line in lines if line.startswith(("panglot check", "panglot export", "PYTHONPATH"))
    )
    create("tiinfer", tmp_path / "script", False, "")
    ran([shims], tmp_path / "script", tmp_path)
    paddle = tmp_path / "paddle"
    create("paddle", paddle, False, "")
    reference = "PYTHONPATH=$(panglot shims paddle) python predict.py"
    ran([export, "panglot run . images/demo.png --save served.npy", reference], paddle, tmp_path)
    (compared,) = run_lines([check], paddle, tmp_path / "lines.sh")
    assert compared.code in (0, 1), compared.said
    assert "agree" in compared.said or "differ" in compared.said
