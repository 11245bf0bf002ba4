"""The tools of Panglot on models of MLflow."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from support import mlflow
from support.server import PACKAGES, ROOT
from support.server import panglot as command

pytestmark = [pytest.mark.rest("mlflow in an environment of its own"), pytest.mark.timeout(400)]
EXAMPLE = ROOT / "examples" / "mlflow"


def panglot(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A command whose workers have mlflow."""
    return command(*arguments, env={"PANGLOT_PYTHON": mlflow.python()})


def test_run_with_values_and_files_in_the_form_that_fits(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("x,y\n1,2\n3,4\n")
    for given, expected in (
        ('[{"x": 1, "y": 2}]', [3.0]),
        ('{"dataframe_split": {"columns": ["x", "y"], "data": [[1, 2]]}}', [3.0]),
        (str(tmp_path / "table.csv"), [3.0, 7.0]),
    ):
        done = panglot("run", str(PACKAGES / "mlflow_signature"), given)
        assert json.loads(done.stdout.splitlines()[0]).get("answer", {}).get("predictions") == expected or (
            json.loads(done.stdout.splitlines()[0]) == {"predictions": expected}
        ), done.stdout + done.stderr


@pytest.mark.document("mlflow.27")
def test_inspect_shows_the_signature_and_the_versions() -> None:
    done = panglot("inspect", str(EXAMPLE))
    for said in ("float64 [-1, 64]", "digit: long", "places: long", "mlflow 3.17.2", "POST /invocations"):
        assert said in done.stdout


def test_what_new_writes_is_served(tmp_path: Path) -> None:
    assert panglot("new", "mlflow", str(tmp_path / "mine")).returncode == 0
    done = panglot("run", str(tmp_path / "mine"))
    assert json.loads(done.stdout.splitlines()[0])["answer"]["predictions"][0] == {"label": "friendly", "score": 0.9478}
