"""A repository without a script: the pipeline of transformers for `HF_TASK`, here of a small library of that name."""

from __future__ import annotations

from pathlib import Path

import pytest

from panglot import dialects
from panglot.errors import StartError
from support.server import panglot, serving

LIBRARY = """
def pipeline(task, model, trust_remote_code):
    def run(*inputs, **parameters):
        return {"task": task, "inputs": list(inputs), "parameters": parameters}
    return run
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text('{"architectures": ["BertForSequenceClassification"]}')
    return tmp_path / "model"


@pytest.mark.document("hfendpoint.10")
def test_inputs_and_parameters_reach_the_pipeline(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "transformers.py").write_text(LIBRARY)
    env = {"HF_TASK": "zero-shot-classification", "PYTHONPATH": str(tmp_path / "lib")}
    with serving(repository, env=env) as server:
        body = {"inputs": "a", "parameters": {"top_k": 2, "generate_kwargs": {"seed": 7}}}
        answer = server.client.post("/", json=body).json()
        assert answer == {"task": env["HF_TASK"], "inputs": ["a"], "parameters": {"top_k": 2, "seed": 7}}
        named = server.client.post("/", json={"inputs": {"text": "a", "candidateLabels": ["b"]}}).json()
        assert named["parameters"] == {"sequences": "a", "candidate_labels": ["b"]}


@pytest.mark.document("hfendpoint.10")
def test_without_transformers_the_sentence_says_what_to_install(repository: Path, tmp_path: Path) -> None:
    # A library whose import fails as if it were not there: the tests' environment may have the real one.
    (tmp_path / "lib").mkdir()
    missing = 'raise ModuleNotFoundError("No module named \'transformers\'", name="transformers")\n'
    (tmp_path / "lib" / "transformers.py").write_text(missing)
    env = {"HF_TASK": "text-classification", "PYTHONPATH": str(tmp_path / "lib")}
    done = panglot("serve", str(repository), "--port", "0", seconds=60, env=env)
    assert done.returncode == 3, done.stderr
    assert "the pipeline for HF_TASK=text-classification needs transformers" in done.stderr.replace("\n", " ")
    assert "pip install transformers" in done.stderr


def test_without_the_task_it_is_no_package(repository: Path) -> None:
    with pytest.raises(StartError):
        dialects.discover(repository)
