"""The tools on the examples of platforms that clouds keep to themselves: each is run, compared, measured, examined and
packed as it lies."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support import mlflow
from support.server import ROOT
from support.server import panglot as command

DIGITS = {"digits": [7, 3], "scores": [0.962, 0.991]}
ANSWERS: dict[str, tuple[str, Any]] = {
    "azureml": ("request.json", DIGITS),
    "cog": ("request.json", None),
    "hfendpoint": ("seven.png", None),
    "mlflow": (
        "serving_input_example.json",
        {"predictions": [{"digit": 7, "score": 0.962}, {"digit": 3, "score": 0.991}]},
    ),
    "paieas": ("seven.png", None),
    "runpod": ("test_input.json", None),
    "sagemaker": ("request.json", DIGITS),
    "torchserve": ("request.json", {"label": "friendly", "score": 3}),
    "truss": ("request.json", DIGITS),
}
"""A file that an example takes, and what it answers to it, where its own example is that file."""


@pytest.fixture(params=ANSWERS)
def example(request: pytest.FixtureRequest) -> Path:
    return ROOT / "examples" / request.param


def panglot(example: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command whose workers have what the example imports."""
    env = {"PANGLOT_PYTHON": mlflow.python()} if example.name == "mlflow" else {}
    done = command(*arguments, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def answered(example: Path, *inputs: str) -> Any:
    return json.loads(panglot(example, "run", str(example), *inputs).stdout.splitlines()[0])


def test_run_and_check_agree(example: Path, tmp_path: Path) -> None:
    name, expected = ANSWERS[example.name]
    answer = answered(example, str(example / name))
    assert expected is None or expected in (answer, answer.get("answer"))
    (tmp_path / "old.jsonl").write_text(json.dumps(answer.get("answer", answer) if expected else answer) + "\n")
    done = panglot(example, "check", str(example), str(example / name), "--against", str(tmp_path / "old.jsonl"))
    assert "both sides agree on 1 input" in done.stdout


def test_bench_has_a_request_for_it(example: Path) -> None:
    options = ("--duration", "0.3", "--warmup", "0.1", "--concurrency", "2", "--json")
    assert json.loads(panglot(example, "bench", str(example), *options).stdout)


def test_doctor_serves_it_and_sends_the_example(example: Path) -> None:
    report = json.loads(panglot(example, "doctor", str(example), "--json").stdout)
    assert report["problems"] == 0, report
    assert any("200" in str(finding) for finding in report["findings"])


def test_a_package_for_containers_has_a_dockerfile(example: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(example, tmp_path / "copy")
    panglot(example, "package", str(copy))
    assert (copy / "deploy" / "Dockerfile").is_file()
