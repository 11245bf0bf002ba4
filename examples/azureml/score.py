"""Reads digits of 8 x 8 cells, each row of `data` 64 numbers from 0 (black) to 1 (white)."""

import json
import logging
import os

import numpy as np


def init():
    """Load the weights, once in every process."""
    global weights, bias
    path = os.path.join(os.getenv("AZUREML_MODEL_DIR"), "model", "digits.npz")
    with np.load(path) as file:
        weights, bias = file["weights"], file["bias"]
    logging.info("%d digits", len(bias))


def run(raw_data):
    """Answer one request: the digit of every row, and how sure that is."""
    rows = np.array(json.loads(raw_data)["data"], dtype=np.float32)
    scores = rows @ weights + bias
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares = powers / powers.sum(axis=1, keepdims=True)
    return {"digits": shares.argmax(axis=1).tolist(), "scores": shares.max(axis=1).astype(float).round(3).tolist()}
