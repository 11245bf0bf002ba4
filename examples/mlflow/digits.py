"""Reads digits of 8 x 8 cells, each row 64 numbers from 0 (black) to 1 (white)."""

import mlflow
import numpy as np
import pandas as pd


class Digits(mlflow.pyfunc.PythonModel):
    def load_context(self, context):
        """Load the weights, once in every process."""
        with np.load(context.artifacts["weights"]) as file:
            self.weights, self.bias = file["weights"], file["bias"]

    def predict(self, context, model_input, params=None):
        """Answer one request: the digit of every row, and how sure that is."""
        scores = model_input @ self.weights + self.bias
        powers = np.exp(scores - scores.max(axis=1, keepdims=True))
        shares = powers / powers.sum(axis=1, keepdims=True)
        return pd.DataFrame({"digit": shares.argmax(axis=1), "score": shares.max(axis=1).round(params["places"])})


mlflow.models.set_model(Digits())
