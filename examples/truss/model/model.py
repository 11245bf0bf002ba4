"""Reads digits of 8 x 8 cells, each row of `data` 64 numbers from 0 (black) to 1 (white)."""

import numpy as np


class Model:
    def __init__(self, **kwargs):
        self._data_dir = kwargs["data_dir"]
        self._weights = None
        self._bias = None

    def load(self):
        """Load the weights, once in every process."""
        with np.load(self._data_dir / "digits.npz") as file:
            self._weights, self._bias = file["weights"], file["bias"]

    def preprocess(self, model_input):
        return np.array(model_input["data"], dtype=np.float32)

    def predict(self, rows):
        scores = rows @ self._weights + self._bias
        powers = np.exp(scores - scores.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)

    def postprocess(self, shares):
        """The digit of every row, and how sure that is."""
        return {"digits": shares.argmax(axis=1), "scores": shares.max(axis=1).astype(float).round(3)}
