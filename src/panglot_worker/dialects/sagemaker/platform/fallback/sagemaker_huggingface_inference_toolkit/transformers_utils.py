"""Pipelines of transformers, and which one a model is for."""

import json
from typing import Any, List

from panglot_worker.dialects.sagemaker.containers.huggingface import BY_FEATURES, TASKS
from panglot_worker.dialects.sagemaker.libraries import library

ARCHITECTURES_2_TASK = TASKS
FILE_LIST_NAMES = ["config.json", "special_tokens_map.json", "tokenizer_config.json", "tokenizer.json", "vocab.txt"]


def infer_task_from_model_architecture(model_config_path: str, architecture_index: int = 0) -> str:
    """The task of the model whose config.json is at a path. Raises ValueError where nothing tells it."""
    with open(model_config_path, encoding="utf-8") as file:
        architectures: List[str] = json.load(file).get("architectures") or [""]
    found = [task for ending, task in TASKS.items() if architectures[architecture_index].endswith(ending)]
    if not found:
        raise ValueError("Task couldn't be inferenced from %s." % architectures[architecture_index])
    return found[-1]


def get_pipeline(task: str, device: int, model_dir: Any, **options: Any) -> Any:
    """The pipeline for a task with the model of a folder."""
    kind = "feature_extractor" if task in BY_FEATURES else "tokenizer"
    return library("transformers").pipeline(
        task=task, model=str(model_dir), device=device, **{kind: str(model_dir), **options}
    )


def is_aws_neuron_available() -> bool:
    return False
