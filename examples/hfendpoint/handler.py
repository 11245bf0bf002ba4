"""Reads the digit in a picture of any size, white on black: a custom handler of Hugging Face Inference Endpoints."""

import base64
import io
import os
from typing import Any

import numpy as np
from PIL import Image

CELLS = 8


class EndpointHandler:
    """Reads the digit in a picture."""

    def __init__(self, path: str = ""):
        weights = np.load(os.path.join(path, "digits.npz"))
        self.weights, self.bias = weights["weights"], weights["bias"]

    def __call__(self, data: dict[str, Any]) -> list[dict[str, Any]]:
        """
        Args:
            data: `inputs`, a picture (sent as the body with its own type, or in base64), and `parameters` with `top_k`.
        Return:
            The most likely digits: [{"label": "7", "score": 0.962}]
        """
        picture = data.pop("inputs", data)
        parameters = data.pop("parameters", {})
        if isinstance(picture, str):
            picture = Image.open(io.BytesIO(base64.b64decode(picture)))
        scores = softmax(cells(picture) @ self.weights + self.bias)
        best = np.argsort(-scores)[: parameters.get("top_k", 1)]
        return [{"label": str(digit), "score": round(float(scores[digit]), 3)} for digit in best]


def cells(picture):
    """The brightness of 8 x 8 cells."""
    return np.asarray(picture.convert("L").resize((CELLS, CELLS), Image.Resampling.BOX)).ravel() / 255


def softmax(scores):
    powers = np.exp(scores - scores.max())
    return powers / powers.sum()
