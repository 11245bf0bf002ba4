"""The network of examples/megflow behind the plain dialect: one picture, one call."""

import json
import sys
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "megflow"


class Model:
    def load(self):
        sys.path.insert(0, str(EXAMPLE))
        import cv2
        from digits.reader import Reader

        self.cv2 = cv2
        self.reader = Reader(str(EXAMPLE / "digits" / "digits.onnx"))

    def predict(self, file):
        import numpy as np

        picture = self.cv2.imdecode(np.frombuffer(file.bytes, np.uint8), self.cv2.IMREAD_COLOR)
        digit, confidence = self.reader.read([picture])[0]
        return json.dumps({"digit": digit, "confidence": confidence}).encode(), "application/json"
