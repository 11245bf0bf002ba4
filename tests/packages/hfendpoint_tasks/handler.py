"""Several tasks in one handler, told apart by what their requests hold."""

import base64
import io

import numpy as np
from PIL import Image


class EndpointHandler:
    def __init__(self, path=""):
        self.labels = ["POSITIVE", "NEGATIVE"]

    def __call__(self, data):
        inputs, parameters = data["inputs"], data.get("parameters", {})
        if isinstance(inputs, bytes):
            return {"text": f"{len(inputs)} bytes"}
        if isinstance(inputs, Image.Image):
            return [{"label": f"{inputs.width}x{inputs.height}", "score": 1.0}]
        if parameters.get("prompt") == "smaller":
            image = Image.open(io.BytesIO(base64.b64decode(inputs)))
            return image.resize((image.width // 2, image.height // 2))
        if inputs == "a cat":
            return Image.new("RGB", (parameters.get("width", 8), 8))
        if "normalize" in data:
            return np.array([[1, 2, 3]], dtype=np.float32)
        if inputs == "fail":
            raise ValueError("no such text")
        return [[{"label": label, "score": 0.5} for label in self.labels[: parameters.get("top_k", 2)]]]
