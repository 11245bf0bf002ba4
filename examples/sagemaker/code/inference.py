"""Reads digits of 8 x 8 cells, each row of `data` 64 numbers from 0 (black) to 1 (white)."""

import json
import os

import numpy as np
from sagemaker_inference import content_types, decoder, encoder


def model_fn(model_dir):
    """Load the weights, once in every process."""
    with np.load(os.path.join(model_dir, "digits.npz")) as file:
        return file["weights"], file["bias"]


def input_fn(input_data, content_type):
    """Read the rows: JSON with `data`, or CSV and npy with nothing but rows."""
    if content_type == content_types.JSON:
        return np.array(json.loads(input_data)["data"], dtype=np.float32)
    return np.atleast_2d(decoder.decode(input_data, content_type)).astype(np.float32)


def predict_fn(data, model):
    """The share of every digit, for each row."""
    weights, bias = model
    scores = data @ weights + bias
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def output_fn(prediction, accept):
    """The digit of every row, and how sure that is; the shares themselves as CSV or npy."""
    if accept != content_types.JSON:
        return encoder.encode(prediction, accept), accept
    sure = prediction.max(axis=1).astype(float).round(3).tolist()
    return json.dumps({"digits": prediction.argmax(axis=1).tolist(), "scores": sure})
