"""Repositories without a script: the pipeline of their task, as the platform's default handler has it."""

from __future__ import annotations

import importlib
import os
from typing import Any, Dict

from panglot_worker.errors import ScriptError

RENAMED = {
    "zero-shot-classification": {"candidateLabels": "candidate_labels", "text": "sequences"},
    "table-question-answering": {"question": "query"},
}
"""Names of inputs that clients send otherwise than pipelines take them."""
GENERATION = ("generation_parameters", "generate_kwargs")
"""Parameters whose values stand for further parameters."""


class DefaultHandler:
    """A pipeline of transformers, by `HF_TASK`."""

    def __init__(self, path: str = "") -> None:
        self.task = os.environ.get("HF_TASK", "")
        try:
            transformers: Any = importlib.import_module("transformers")
        except ImportError as error:
            if error.name != "transformers":
                raise
            problem = "there is no script, and the pipeline for HF_TASK=%s needs transformers" % self.task
            fix = "pip install transformers, for the interpreter of --python; or write a handler.py"
            raise ScriptError(problem, path, fix=fix) from None
        trusted = os.environ.get("HF_TRUST_REMOTE_CODE", "").lower() in ("1", "true")
        self.pipeline: Any = transformers.pipeline(task=self.task, model=path, trust_remote_code=trusted)

    def __call__(self, data: Dict[str, Any]) -> Any:
        """The pipeline's result: inputs that are a dict are its keywords, `parameters` too."""
        inputs = data.pop("inputs", data)
        parameters: Dict[str, Any] = dict(data.pop("parameters", None) or {})
        for name in GENERATION:
            parameters.update(parameters.pop(name, None) or {})
        if not isinstance(inputs, dict):
            return self.pipeline(inputs, **parameters)
        if self.task == "question-answering" and not {"question", "context"} <= set(inputs):
            raise ValueError("question-answering needs question and context in inputs")
        renamed = RENAMED.get(self.task, {})
        named = {str(renamed.get(name, name)): value for name, value in inputs.items()}
        return self.pipeline(**named, **parameters)
