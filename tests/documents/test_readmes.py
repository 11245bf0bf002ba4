"""Every line of shell in the README of every example and template works as it is pasted."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from panglot import dialects
from panglot.tools.scaffold import create
from support import mlflow
from support.server import ROOT
from support.shell_lines import Ran, commands, run_lines
from support.traffic import SOAK

EXAMPLES = sorted(path.parent.name for path in (ROOT / "examples").glob("*/README.md"))
TEMPLATES = [
    (name, kind)
    for name, dialect in dialects.known().items()
    if dialect.has("templates")
    for kind in dialect.load("templates").TEMPLATES
    # With packages that this environment lacks: tests/tools/test_new_kinds.py runs it.
    if kind != "transformers"
]
FROM_THE_ROOT = ("bare", "modelarts", "triton")
"""Examples whose lines are for the root of the repository."""
LONG = ("python train.py", "pip install -r requirements.txt onnx scikit-learn")
"""Of examples/digits: a minute of training, which `make soak` runs."""
ELSEWHERE = {"mlflow": mlflow.python}
"""Dialects with an interpreter of their own, which has what their pages install: the lines run without a network."""
OWN_SERVER = (("megflow", "bytes"), ("megflow", "video"))
"""Templates whose tests start a server on a fixed port, which is free where these lines run."""
ABSENT = "mnist_5k.csv.gz"
"""A file of another project that one line names."""


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples(name: str, tmp_path: Path) -> None:
    copy = tmp_path / "examples" / name
    shutil.copytree(ROOT / "examples" / name, copy, ignore=shutil.ignore_patterns("__pycache__"))
    text = (copy / "README.md").read_text()
    lines = [line for line in commands(text) if ABSENT not in line and (SOAK or name != "digits" or line not in LONG)]
    lines = installed(name, lines)
    check(lines, text, tmp_path if name in FROM_THE_ROOT else copy, tmp_path)


@pytest.mark.parametrize(("dialect", "kind"), TEMPLATES, ids=[f"{name} {kind}".strip() for name, kind in TEMPLATES])
def test_templates(dialect: str, kind: str, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    create(dialect, folder, False, kind)
    text = (folder / "README.md").read_text()
    lines = commands(text)
    if (folder / "requirements.txt").is_file():
        assert lines[0].startswith("pip install "), "what it needs comes first"
    if (dialect, kind) in OWN_SERVER:
        lines.insert(1, "python -m pytest -q -p no:cacheprovider")
    check(installed(dialect, lines), text, folder, tmp_path)


def installed(dialect: str, lines: list[str]) -> list[str]:
    """The lines with the dialect's own interpreter, which has already what some of them install."""
    if dialect not in ELSEWHERE:
        return lines
    serve = f"panglot serve --python {ELSEWHERE[dialect]()} "
    return [line.replace("panglot serve ", serve) for line in lines if not line.startswith("pip install ")]


def check(lines: list[str], text: str, folder: Path, temporary: Path) -> None:
    assert lines, "there is nothing to paste"
    # Continuous integration has TensorFlow without the code for GPUs.
    ran = run_lines([line.replace("install tensorflow ", "install tensorflow-cpu ") for line in lines], folder,
                    temporary / "lines.sh")  # fmt: skip
    for one in ran:
        assert one.code == 0, f"$ {one.line}\n{one.said}"
    assert not [one.line for one in ran if "command not found" in one.said]
    wanted = promised(text)
    if wanted:
        assert any(is_said(wanted, one) for one in ran), f"none answers {wanted}:\n" + "\n".join(
            one.said for one in ran
        )


def promised(text: str) -> str:
    """The first answer that the README shows."""
    found = re.search(r"answers?[^{`]*\s+```json\n(.*?)\n```|answers? `([\[{].*?[\]}])`", text, re.DOTALL)
    return "" if found is None else found[1] or found[2]


def is_said(wanted: str, ran: Ran) -> bool:
    """Whether a line answered so, but for spaces, what is left out, and digits beyond the third."""
    short = r"(\d\.\d{3})\d+"
    pieces = re.sub(short, r"\1", re.sub(r"\s", "", wanted)).split("...")
    said = re.sub(short, r"\1", re.sub(r"\s", "", ran.said))
    return all(piece in said for piece in pieces)
