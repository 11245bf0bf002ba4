"""What a dialect says about the API of its script is checked before the worker says READY."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from panglot_worker.line.description import KEYS, ROUTE_KEYS, Description, RouteDescription, problems


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


def test_a_dialect_with_a_wrong_description_does_not_start(tmp_path: Path) -> None:
    """A dialect of another distribution that names a key nobody reads: one line, exit code 3."""
    acme = Path(__file__).resolve().parents[1] / "distributions" / "acme"
    package = tmp_path / "acme_dialect"
    for source in (acme / "acme_dialect").rglob("*"):
        if source.is_file() and "__pycache__" not in source.parts:
            target = package / source.relative_to(acme / "acme_dialect")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
    half = package / "worker" / "__init__.py"
    half.write_text(half.read_text().replace('"entry": "answer"', '"entrance": "answer"'))
    info = tmp_path / "acme_dialect-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-dialect\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[panglot.dialects]\nacme = acme_dialect\n")
    script = tmp_path / "served" / "acme_service.py"
    script.parent.mkdir()
    script.write_text("import acme\n\n\n@acme.answers\ndef answer(question):\n    return question\n")
    environment = {"PYTHONPATH": str(tmp_path), "PATH": "/usr/bin:/bin"}
    ended = subprocess.run(
        [sys.executable, "-m", "panglot", "serve", str(script.parent), "--dialect", "acme", "--port", "0"],
        env=environment, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert ended.returncode == 3, ended.stderr
    assert "the dialect 'acme' does not describe its API as it must: nobody reads entrance" in ended.stderr
