"""Writes small model files of one framework into a folder, and runs some of them, given as KIND=FILE.

`python make_models.py torch FOLDER pt2=exported.pt2`
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def of_torch(folder: Path) -> None:
    """x FP32 [N, 4] to twice its rows, and their sums."""
    import torch

    class Twice(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return x * 2, x.sum(1)

    torch.jit.script(Twice()).save(str(folder / "scripted.pt"))
    torch.save({"weight": torch.ones(2)}, str(folder / "weights.pt"))
    rows = torch.export.Dim("rows")
    program = torch.export.export(Twice(), (torch.ones(2, 4),), dynamic_shapes={"x": {0: rows}})
    torch.export.save(program, str(folder / "exported.pt2"))


def of_tensorflow(folder: Path) -> None:
    import tensorflow as tf

    class Twice(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32)])
        def serve(self, x):
            return {"twice": x * 2, "text": tf.strings.as_string(tf.reduce_sum(x, 1), precision=1)}

    made = Twice()
    tf.saved_model.save(made, str(folder / "saved" / "1"), signatures={"serving_default": made.serve})


def of_trees(folder: Path) -> None:
    import joblib
    import lightgbm
    import xgboost
    from sklearn.datasets import load_iris
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    rows, classes = load_iris(return_X_y=True)
    joblib.dump(LogisticRegression(max_iter=500).fit(rows, classes), folder / "iris.joblib")
    words = make_pipeline(CountVectorizer(), LogisticRegression()).fit(["good day", "bad day"], ["good", "bad"])
    joblib.dump(words, folder / "words.pkl")
    xgboost.XGBClassifier(n_estimators=3, n_jobs=1).fit(rows, classes).save_model(folder / "trees.json")
    lightgbm.LGBMClassifier(n_estimators=3, verbose=-1).fit(rows, classes).booster_.save_model(folder / "leaves.txt")


def asked(kind: str, path: Path) -> dict[str, Any]:
    """What a runtime says of a file, and gives for a row; here, where the framework is imported already."""
    import numpy

    from panglot_worker.runtimes import open_model, proving
    from panglot_worker.runtimes.base import DeclaredInput, ModelFile

    model = open_model(kind, ModelFile(str(path), inputs=[DeclaredInput("x", "FP32", [-1, 4])]))
    outputs = model.run({"x": numpy.array([[1, 2, 3, 4]], "float32")}, [spec.name for spec in model.outputs])
    return {
        "tensors": [[spec.name, spec.datatype, spec.shape] for spec in (*model.inputs, *model.outputs)],
        "outputs": {name: array.tolist() for name, array in outputs.items()},
        "by_rows": proving.verdict(model, 16).sliced > 0,
    }


if __name__ == "__main__":
    framework, folder, *files = sys.argv[1:]
    {"torch": of_torch, "tensorflow": of_tensorflow, "trees": of_trees}[framework](Path(folder))
    print(json.dumps([asked(kind, Path(folder) / path) for kind, _, path in (file.partition("=") for file in files)]))
