"""Model files and their runtimes: one module per library, imported only when a file of its kind is opened."""

from __future__ import annotations

import importlib

from panglot_worker.errors import ScriptError
from panglot_worker.runtimes.base import ModelFile, ModelRuntime

RUNTIMES = {
    "onnx": "onnx.session:OnnxSession",
    "torchscript": "torchscript:TorchScript",
    "pt2": "exported_program:ExportedProgram",
    "savedmodel": "saved_model:SignatureOfSavedModel",
    "paddle": "paddle.predictor:PaddlePredictor",
    "sklearn": "estimator:Estimator",
    "xgboost": "boosters:XGBoost",
    "lightgbm": "boosters:LightGBM",
}
"""The class that opens a file, by the kind that the front tells."""


def open_model(kind: str, file: ModelFile) -> ModelRuntime:
    """The model in a file, ready to run. Raises ScriptError, one line with a fix."""
    if kind not in RUNTIMES:
        raise ScriptError("nothing here runs a model of the kind %s" % kind, file.path)
    module, _, name = RUNTIMES[kind].partition(":")
    model: ModelRuntime = getattr(importlib.import_module("%s.%s" % (__name__, module)), name)(file)
    return model
