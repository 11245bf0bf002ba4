# -*- coding: utf-8 -*-
import json
from io import BytesIO

import allspark
import numpy as np
from PIL import Image


class ImageProcessor(allspark.BaseProcessor):
    """curl http://127.0.0.1:8080/api/predict/image --data-binary @cat.png"""

    def initialize(self):
        self.classes = ["dark", "bright"]
        self.size = (8, 8)

    def pre_proccess(self, data):
        image = Image.open(BytesIO(data)).convert("L").resize(self.size)
        return np.asarray(image, dtype=np.float32) / 255.0

    def post_process(self, score):
        label = self.classes[int(score > 0.5)]
        return json.dumps({"label": label, "score": round(float(score), 3)}).encode("utf8")

    def process(self, data):
        try:
            pixels = self.pre_proccess(data)
        except Exception as e:
            return str(e), 400
        return self.post_process(pixels.mean()), 200


if __name__ == "__main__":
    # paramter worker_threads indicates concurrency of processing
    runner = ImageProcessor(worker_threads=10)
    runner.run()
