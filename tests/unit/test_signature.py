"""`panglot inspect` shows what a script says about itself: docstring, inputs with types and defaults, result."""

from __future__ import annotations

import json
from pathlib import Path

from support.server import panglot

HINTED = '''\
"""A script about texts."""
from typing import Literal, Optional


def predict(text: str, level: int = 3, *, mood: Literal["a", "b"] = "a", note: Optional[str] = None) -> dict:
    """Judge a text.

    More than the first paragraph is for readers of the script.
    """
    return {"score": 1.0}
'''
STAGED = '''\
class Model:
    """Doubles numbers."""

    def preprocess(self, number: float) -> float:
        return number

    def predict_batch(self, items):
        return items

    def postprocess(self, item) -> "list[float]":
        return [item]
'''


def inspected(folder: Path, script: str) -> tuple[dict[str, object], str]:
    (folder / "model.py").write_text(script)
    shown = panglot("inspect", str(folder))
    assert shown.returncode == 0, shown.stderr
    return json.loads(panglot("inspect", str(folder), "--json").stdout), shown.stdout


def test_a_function_with_hints(tmp_path: Path) -> None:
    facts, shown = inspected(tmp_path, HINTED)
    assert facts["docstring"] == "Judge a text."
    assert facts["inputs"] == [
        "text: str",
        "level: int = 3",
        "mood: Literal['a', 'b'] = 'a'",
        "note: Optional[str] = None",
    ]
    assert facts["returns"] == ["dict"]
    lines = [line.split(maxsplit=1) for line in shown.splitlines()]
    assert ["inputs", "text: str"] in [[word.strip() for word in line] for line in lines]
    assert "Judge a text." in shown
    assert "level: int = 3" in shown


def test_the_first_and_the_last_function_of_a_class_say_what_goes_in_and_out(tmp_path: Path) -> None:
    facts, _ = inspected(tmp_path, STAGED)
    assert (facts["docstring"], facts["inputs"], facts["returns"]) == (
        "Doubles numbers.",
        ["number: float"],
        ["'list[float]'"],
    )


def test_a_script_without_hints_shows_the_name_alone(tmp_path: Path) -> None:
    facts, _ = inspected(tmp_path, "def predict(request):\n    return request\n")
    assert (facts["docstring"], facts["inputs"], facts["returns"]) == ("", ["request"], [])
