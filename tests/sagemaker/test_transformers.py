"""The Hugging Face container with transformers itself: a pipeline where the package has no script."""

from __future__ import annotations

import json
import shutil
import tarfile
from pathlib import Path

import pytest

from support import transformers
from support.server import serving

pytestmark = [pytest.mark.rest("installs transformers, which needs torch"), pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    pytest.importorskip("torch")
    return transformers.variables(tmp_path_factory.mktemp("stubs"))


@pytest.fixture(scope="module")
def models(env: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return transformers.made(tmp_path_factory.mktemp("models"), env)


@pytest.mark.document("sagemaker.29", "sagemaker.28")
@pytest.mark.parametrize("task", ["", "text-classification"])
def test_a_model_without_a_script_is_a_pipeline(models: Path, env: dict[str, str], task: str, tmp_path: Path) -> None:
    expected = json.loads((models / "expected.json").read_text())["good"]
    archive = tmp_path / "model.tar.gz"
    with tarfile.open(archive, "w:gz") as opened:
        opened.add(models / "sentiment", ".")
    given = {**env, **({"HF_TASK": task} if task else {}), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    with serving(archive, "--flavor", "huggingface", env=given) as server:
        answer = server.client.post("/invocations", json={"inputs": "good"})
        assert answer.status_code == 200, server.log
        assert answer.json()[0]["label"] == expected[0]["label"]
        assert answer.json()[0]["score"] == pytest.approx(expected[0]["score"], rel=1e-4)
        both = server.client.post("/invocations", json={"inputs": "good", "parameters": {"top_k": None}}).json()
        assert sorted(entry["label"] for entry in both) == ["LABEL_0", "LABEL_1"]
        csv = server.client.post("/invocations", content="inputs\ngood\nbad\n", headers={"Content-Type": "text/csv"})
        assert len(csv.json()) == 2
        for wrong in ({"inputs": 7}, {"inputs": "good", "parameters": {"no_such": 1}}):
            assert server.client.post("/invocations", json=wrong).status_code == 400


@pytest.mark.document("sagemaker.06", "sagemaker.28")
def test_a_script_that_loads_its_model_by_transformers(models: Path, env: dict[str, str], tmp_path: Path) -> None:
    script = """
from transformers import AutoModelForSequenceClassification, AutoTokenizer


def model_fn(model_dir):
    return AutoTokenizer.from_pretrained(model_dir), AutoModelForSequenceClassification.from_pretrained(model_dir)


def predict_fn(data, model_and_tokenizer):
    tokenizer, model = model_and_tokenizer
    encoded = tokenizer(data.pop("inputs", data), return_tensors="pt")
    return {"label": int(model(**encoded).logits.argmax())}
"""
    folder = shutil.copytree(models / "sentiment", tmp_path / "model")
    (folder / "code").mkdir()
    (folder / "code" / "inference.py").write_text(script)
    expected = json.loads((models / "expected.json").read_text())["good"][0]["label"]
    with serving(folder, env=env) as server:
        answer = server.client.post("/invocations", json={"inputs": "good"})
        assert f"LABEL_{answer.json()['label']}" == expected
        failed = server.client.post("/invocations", json={"inputs": {"a": 1}})
        assert (failed.status_code, failed.json()["type"]) == (400, "InternalServerException")
