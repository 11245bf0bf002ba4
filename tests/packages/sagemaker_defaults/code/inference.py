"""Only the model: bodies are left to the toolkit."""

import numpy as np


def model_fn(model_dir):
    return 2


def predict_fn(data, model):
    if hasattr(data, "toarray"):
        return data.toarray() * model
    if data.shape and data.shape[-1] == 3:
        return {"a": np.float32(1.5), "shape": list(data.shape)}
    if data.size == 5:
        return np.array([1.0, float("nan")])
    return data * model
