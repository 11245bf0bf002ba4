"""Reads handwritten digits: a tiinfer package with nothing but numpy and Pillow.

The platform's server, and Panglot in its place, imports this file, makes one `Digits(model_dir)` in every process,
calls `load()` once, and then `preprocess`, `predict` and `postprocess` for every request. In `__init__`,
`self.workers = 2` would ask for two processes.
"""

import base64
import io
import logging
import os
import urllib.request

import numpy as np
from mosec import ValidationError
from PIL import Image

import tiinfer


class Digits(tiinfer.Model):
    """Says which digit a picture shows, white on black."""

    def __init__(self, model_dir: str):
        super().__init__(model_dir)
        self.ready = False

    def load(self) -> bool:
        weights = np.load(os.path.join(self.model_dir, "digits.npz"))
        self.weights, self.bias = weights["weights"], weights["bias"]
        logging.info("weights for %d digits", len(self.bias))
        self.ready = True
        return self.ready

    def preprocess(self, request):
        if not isinstance(request, dict) or not request.get("images"):
            raise ValidationError('send {"images": ["base64 of a picture, or its http address"]}')
        return {"instances": np.stack([self.picture(text) for text in request["images"]])}

    def picture(self, text: str) -> np.ndarray:
        """8 by 8 numbers from 0 to 1, in a row."""
        try:
            content = urllib.request.urlopen(text).read() if text.startswith("http") else base64.b64decode(text)
            image = Image.open(io.BytesIO(content)).convert("L").resize((8, 8), Image.Resampling.BOX)
        except (OSError, ValueError) as error:
            raise ValidationError(f"a picture cannot be read: {error}") from error
        return np.asarray(image, dtype=np.float32).ravel() / 255

    def predict(self, request):
        scores = request["instances"] @ self.weights + self.bias
        odds = np.exp(scores - scores.max(axis=1, keepdims=True))
        return {"odds": odds / odds.sum(axis=1, keepdims=True)}

    def postprocess(self, request):
        best = request["odds"].argmax(axis=1)
        first = int(best[0])
        return {
            "result": {"digit": first, "score": round(float(request["odds"][0, first]), 4)},
            "digits": [int(digit) for digit in best],
        }
