"""Every kind that `panglot new` writes: its test passes, its page shows an example, and its README is short."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from panglot import dialects
from panglot.tools import scaffold
from support import environments, mlflow
from support.server import panglot, serving

CHOICES = scaffold.choices()
OWN_SERVER = {("megflow", "bytes"), ("megflow", "video")}
"""Their tests start servers on ports that their graphs name: tests/documents runs them, where nobody else is."""
PLATFORMS = {
    "azureml", "cog", "evals", "hfendpoint", "megflow", "mlflow", "modelarts", "paddle", "paieas", "runpod",
    "sagemaker", "tiinfer", "torchserve", "triton", "truss",
}  # fmt: skip
TRANSFORMERS = (
    "transformers", "tokenizers", "huggingface-hub", "safetensors", "regex", "tqdm", "typer-slim", "shellingham",
    "hf-xet", "filelock", "fsspec", "packaging",
)  # fmt: skip


def variables(choice: scaffold.Choice, folder: Path) -> dict[str, str]:
    """The environment in which a kind has what it needs, and `panglot` is a command."""
    env = dict(os.environ)
    if choice.kind == "transformers":
        env = environments.over_ours("transformers", *TRANSFORMERS)
        # transformers uses it where it is there, and beside the CPU build of torch it cannot be imported.
        (folder / "sitecustomize.py").write_text("import sys\n\nsys.modules['torchvision'] = None\n")
        env["PYTHONPATH"] += f":{folder}"
    if choice.dialect == "mlflow":
        env["PANGLOT_PYTHON"] = mlflow.python()
    return {**env, "PATH": f"{Path(sys.executable).parent}:{env['PATH']}"}


def test_every_platform_and_every_kind_can_be_written() -> None:
    assert {choice.dialect for choice in CHOICES} >= PLATFORMS
    kinds = [choice.word for choice in CHOICES if choice.dialect == "plain"]
    assert kinds == ["text", "image", "chat", "stream", "batch", "sklearn", "transformers"]
    assert all(choice.title for choice in CHOICES if not dialects.find(choice.dialect).brought_by)
    width = max(len(choice.word) for choice in CHOICES)
    assert [choice.title for choice in CHOICES if width + len(choice.title) > 75] == [], "the list is cut at 80 columns"


@pytest.mark.parametrize("choice", CHOICES, ids=[choice.word for choice in CHOICES])
def test_a_kind_passes_its_test_and_shows_its_example(choice: scaffold.Choice, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    done = panglot("new", *choice.word.split(), str(folder))
    assert done.returncode == 0, done.stderr
    env = variables(choice, tmp_path)
    template = scaffold.find(choice.dialect, choice.kind)[0]
    if template.prepare and not template.prepare.startswith("pip "):
        made = subprocess.run(
            template.prepare.format(folder=folder), shell=True, env=env, capture_output=True, text=True
        )
        assert made.returncode == 0, made.stderr
    readme = (folder / "README.md").read_text().removeprefix(template.card)
    assert len([line for line in readme.splitlines() if line]) <= 11
    if (choice.dialect, choice.kind) not in OWN_SERVER:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)]
        tested = subprocess.run(command, env=env, capture_output=True, text=True, cwd=folder)
        assert "1 passed" in tested.stdout, tested.stdout
    with serving(folder, env={key: env[key] for key in ("PYTHONPATH", "PANGLOT_PYTHON") if key in env}) as server:
        model = server.client.get("/playground.json").json()["models"][0]
        assert model["requests"], "the page has no example to begin with"
        assert "kind" in model["requests"][0]["body"]


def test_the_test_of_a_kind_fails_when_the_answer_is_another(tmp_path: Path) -> None:
    assert panglot("new", "text", str(tmp_path / "mine")).returncode == 0
    (tmp_path / "mine" / "weights.json").write_text(json.dumps({"lovely": -3}))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path / "mine")]
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    tested = subprocess.run(command, env=env, capture_output=True, text=True, cwd=tmp_path)
    assert "1 failed" in tested.stdout
