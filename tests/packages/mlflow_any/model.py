"""A model without a signature: it gets what was sent, and does what the first cell or the key `input` says."""

import time

import mlflow
import numpy as np
import pandas as pd
from mlflow.exceptions import MlflowException
from mlflow.protos.databricks_pb2 import RESOURCE_DOES_NOT_EXIST


class Any(mlflow.pyfunc.PythonModel):
    def predict(self, context, model_input, params=None):
        if isinstance(model_input, dict) and ("messages" in model_input or "input" in model_input):
            return {"data": model_input, "params": params}
        op = first(model_input)
        if op == "raise":
            raise KeyError("a secret of the model")
        if op == "slow":
            time.sleep(8)
        if op == "absent":
            raise MlflowException("there is no such thing", error_code=RESOURCE_DOES_NOT_EXIST)
        if op in RESULTS:
            return RESULTS[op]()
        if op == "type":
            return described(model_input)
        if isinstance(model_input, dict):
            return sum(np.asarray(column) for column in model_input.values())
        return np.asarray(model_input).sum(axis=1)


def first(model_input):
    if isinstance(model_input, dict):
        model_input = next(iter(model_input.values()))
    cell = np.asarray(model_input).ravel()[:1].tolist()
    return cell[0] if cell and isinstance(cell[0], str) else ""


def described(model_input):
    if isinstance(model_input, pd.DataFrame):
        return {"type": "DataFrame", "columns": [str(name) for name in model_input.columns]}
    if isinstance(model_input, dict):
        return {name: described(value) for name, value in model_input.items()}
    return {"type": type(model_input).__name__, "shape": list(np.shape(model_input))}


RESULTS = {
    "series": lambda: pd.Series([-2, 3]),
    "named series": lambda: pd.Series([-2], name="score"),
    "frame": lambda: pd.DataFrame({"a": [1.5], "b": ["x"]}),
    "dict": lambda: {"x": np.float32(1.5), "b": b"hi", "at": np.datetime64("2024-01-02T03:04:05")},
    "scalar": lambda: 3,
    "numpy scalar": lambda: np.int64(4),
    "nan": lambda: float("nan"),
    "nans": lambda: np.array([1.0, np.nan, np.inf]),
    "texts": lambda: ["caf\u00e9", None, True],
    "arrays": lambda: {"out": np.zeros((1, 2), "float32")},
    "set": lambda: {1, 2},
    "empty": list,
}

mlflow.models.set_model(Any())
