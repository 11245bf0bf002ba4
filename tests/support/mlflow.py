"""MLflow models under test, mlflow's own scoring server from PyPI, and models that mlflow itself has saved."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from support import environments, originals
from support.originals import Original
from support.server import PACKAGES, Server, serving

VERSION = "3.17.2"
VERSIONS = (
    f"mlflow-skinny=={VERSION}",
    "fastapi==0.162.4",
    "uvicorn==0.54.0",
    "pandas<4",
    "numpy<3",
    "pyarrow",
    "scikit-learn==1.9.1",
    "cloudpickle==3.1.2",
)
QUIET = {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_TRACKING_URI": "file:///nonexistent"}


def python() -> str:
    """An interpreter with mlflow-skinny, its scoring server, pandas, pyarrow and scikit-learn."""
    return originals.interpreter(f"mlflow-{VERSION}", *VERSIONS)


def folder_of(package: str | Path) -> Path:
    return package if isinstance(package, Path) else PACKAGES / package


@contextlib.contextmanager
def ours(package: str | Path, *flags: str, **options: Any) -> Iterator[Server]:
    """Panglot, with a worker that has mlflow."""
    with serving(folder_of(package), "--python", python(), *flags, **options) as server:
        yield server


@contextlib.contextmanager
def theirs(package: str | Path, **env: str) -> Iterator[Original]:
    """mlflow's scoring server, as `mlflow models serve --env-manager local` starts it."""
    folder = folder_of(package)
    command = [python(), "-m", "uvicorn", "--port", originals.PORT, "mlflow.pyfunc.scoring_server.app:app"]
    variables = {"__pyfunc_model_path__": folder.as_uri(), **QUIET, **env}
    with originals.running(command, folder, ready="/ping", env=variables) as original:
        yield original


SAVING = """
import sys

import mlflow
import numpy as np
import pandas as pd
from mlflow.models import infer_signature
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

where = sys.argv[1]
form = {"serialization_format": "cloudpickle"}

frame = pd.DataFrame({"town": ["Ghent", "Lille", "Ghent", "Lille"], "size": [1.0, 2.0, 3.0, 4.0]})
pipeline = make_pipeline(
    ColumnTransformer([("town", OneHotEncoder(), ["town"])], remainder="passthrough"), LinearRegression()
).fit(frame, [3.5, 5.0, 10.5, 10.0])
mlflow.sklearn.save_model(
    pipeline, where + "/houses", signature=infer_signature(frame, pipeline.predict(frame)),
    input_example=frame.head(2), **form,
)
classifier = LogisticRegression().fit(np.array([[0.0], [1.0], [2.0], [3.0]]), [0, 0, 1, 1])
mlflow.sklearn.save_model(classifier, where + "/chances", pyfunc_predict_fn="predict_proba", **form)


class Pickled(mlflow.pyfunc.PythonModel):
    def __init__(self, factor):
        self.factor = factor

    def predict(self, context, model_input, params=None):
        return pd.DataFrame(model_input) * self.factor


mlflow.pyfunc.save_model(where + "/pickled", python_model=Pickled(3))
"""
"""Saves models of the flavors that a repository has most often."""


def saved() -> Path:
    """A folder with models that mlflow has saved: `houses` and `chances` of scikit-learn, `pickled` of pyfunc."""

    def make(folder: Path) -> None:
        script = folder / "save.py"
        script.write_text(SAVING)
        done = subprocess.run([python(), script, folder], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    return environments.made(f"models-mlflow-{VERSION}", make)
