"""Reads the digit in a picture of any size, white on black: a Python processor of Alibaba Cloud PAI-EAS."""

import io
import json
import os

import allspark
import numpy as np
from PIL import Image

CELLS = 8


class Digits(allspark.BaseProcessor):
    """Reads the digit in a picture, which is the body of the request."""

    def initialize(self):
        weights = np.load(os.path.join(self.get_model_path(), "digits.npz"))
        self.weights, self.bias = weights["weights"], weights["bias"]

    def pre_process(self, data):
        """The brightness of 8 x 8 cells."""
        picture = Image.open(io.BytesIO(data)).convert("L").resize((CELLS, CELLS), Image.Resampling.BOX)
        return np.asarray(picture).ravel() / 255

    def post_process(self, scores):
        powers = np.exp(scores - scores.max())
        best = int(scores.argmax())
        return json.dumps({"digit": best, "score": round(float(powers[best] / powers.sum()), 3)})

    def process(self, data):
        try:
            cells = self.pre_process(data)
        except OSError:
            return b"send a picture", 400
        return self.post_process(cells @ self.weights + self.bias), 200


if __name__ == "__main__":
    Digits(worker_threads=4).run()
