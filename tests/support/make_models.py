"""Writes small model files of one framework into a folder: `python make_models.py torch FOLDER`."""

from __future__ import annotations

import sys
from pathlib import Path


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


if __name__ == "__main__":
    {"torch": of_torch, "tensorflow": of_tensorflow, "trees": of_trees}[sys.argv[1]](Path(sys.argv[2]))
