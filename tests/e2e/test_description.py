"""What a dialect says about the API of its script is checked before the worker says READY."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from panglot_worker.line.description import KEYS, ROUTE_KEYS, Description, RouteDescription, problems
from support.distributions import DISTRIBUTIONS, install


def test_the_checked_keys_are_those_of_the_declared_type() -> None:
    assert set(KEYS) == set(Description.__annotations__)
    assert set(ROUTE_KEYS) == set(RouteDescription.__annotations__)


@pytest.mark.parametrize(
    ("description", "sentence"),
    [
        ([], "it is list, not a dict"),
        ({"exmaple": None}, "nobody reads exmaple"),
        ({"entry": None}, "entry is NoneType, not str"),
        ({"streams": 1}, "streams is int, not bool"),
        ({"example": {"kind": "picture"}}, "example.kind is 'picture', not one of json, file, form, video"),
        ({"example": {"kind": "json"}}, "example has no value, which one of kind json needs"),
        ({"example": {"kind": "json", "value": 1, "extra": 2}}, "nobody reads example.extra"),
        ({"routes": {"/a": {"tensors": {}}}}, "nobody reads routes['/a'].tensors"),
        ({"routes": {"/a": None}}, "routes['/a'] is NoneType, not a dict"),
    ],
)
def test_a_wrong_description_is_explained(description: object, sentence: str) -> None:
    assert any(problem.startswith(sentence) for problem in problems(description)), list(problems(description))


def test_a_right_description_has_no_problem() -> None:
    description: Description = {
        "entry": "predict",
        "example": {"kind": "form", "files": {"image": "image/png"}, "fields": ["name"]},
        "routes": {"/a": {"example": None, "streams": True}},
        "platform": {"document": {}},
    }
    assert not list(problems(description))


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        (
            '"entry": "answer"', '"entrance": "answer"',
            "the dialect 'acme' does not describe its API as it must: nobody reads entrance",
        ),
        ("DIALECT = Acme", "", "the dialect 'acme' cannot be used: it must define DIALECT"),
        ("def describe", "def described", "its class Acme must define describe"),
        ("return Stages(", "return dict(", "Acme.load must return Stages, not dict"),
        (
            "encode=self.encode)", "encode=self.encode, script_code=frozenset(['read']))",
            "Acme.load names the stage 'read'; there are decode, preprocess",
        ),
    ],
    ids=["other keys", "no class", "no method", "no stages", "no stage"],
)  # fmt: skip
def test_a_dialect_of_the_wrong_shape_does_not_start(tmp_path: Path, right: str, wrong: str, message: str) -> None:
    """One line, and exit code 3."""
    install(DISTRIBUTIONS / "acme", tmp_path / "outside")
    half = tmp_path / "outside" / "acme_dialect" / "worker" / "__init__.py"
    assert right in half.read_text()
    half.write_text(half.read_text().replace(right, wrong))
    script = tmp_path / "served" / "acme_service.py"
    script.parent.mkdir()
    script.write_text("import acme\n\n\n@acme.answers\ndef answer(question):\n    return question\n")
    ended = subprocess.run(
        [sys.executable, "-m", "panglot", "serve", str(script.parent), "--dialect", "acme", "--port", "0"],
        env={"PYTHONPATH": str(tmp_path / "outside")}, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert ended.returncode == 3, ended.stderr
    assert message in ended.stderr
