"""Handwritten digits: an ONNX model in a ModelArts package.

ModelArts has no engine for ONNX, so the script brings its own: it derives from the TensorFlow base class, finds its
model beside itself, and replaces `_inference`.
"""

import os

import log
import numpy as np
import onnxruntime
from model_service.tfserving_model_service import TfServingBaseService
from PIL import Image

logger = log.getLogger(__name__)


class DigitService(TfServingBaseService):
    def __init__(self, model_name, model_path):
        self.model_name = model_name
        self.model_path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "digits.onnx")
        self.session = onnxruntime.InferenceSession(self.model_path, providers=["CPUExecutionProvider"])
        logger.info("loaded %s", self.model_path)

    def _preprocess(self, data):
        """`data` is {form key: {file name: file}}; every picture becomes a row of 8 x 8 brightnesses."""
        rows = []
        for files in data.values():
            for file in files.values():
                picture = Image.open(file).convert("L").resize((8, 8), Image.BOX)
                rows.append(np.asarray(picture, dtype=np.float32).ravel() / 255)
        return np.stack(rows)

    def _inference(self, data):
        return self.session.run(["probabilities"], {"images": data})[0]

    def _postprocess(self, data):
        return {
            "digits": [int(row.argmax()) for row in data],
            "certainty": [round(float(row.max()), 3) for row in data],
        }
