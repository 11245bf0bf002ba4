"""Digits with TensorFlow, in the manner of the platform's sample; it has no postprocess."""

import base64
import logging
import os

import numpy as np
import tensorflow as tf

import tiinfer


class Digits(tiinfer.Model):
    def __init__(self, model_dir: str):
        super().__init__(model_dir)
        self.ready = False

    def load(self) -> bool:
        try:
            self.model = tf.keras.models.load_model(os.path.join(self.model_dir, "model"))
            self.ready = True
        except Exception as error:
            logging.error("load model failed: %s", error)
        return self.ready

    def preprocess(self, request):
        if "images" not in request:
            return {"error": "invalid param"}
        try:
            return {"instances": [self._picture(text) for text in request["images"]]}
        except Exception as error:
            logging.error("preprocess failed: %s", error)
            return {"error": "preprocess failed", "message": str(error)}

    def _picture(self, text):
        pixels = tf.image.resize(tf.io.decode_jpeg(base64.b64decode(text), channels=3), [28, 28])
        return tf.expand_dims(tf.image.rgb_to_grayscale(pixels), 0)

    def predict(self, request):
        if "instances" not in request:
            return request
        output = self.model.predict(tf.concat(request["instances"], 0))
        return {"result": {"type": "mnist", "model_name": "sequential", "pred": int(np.argmax(output, 1)[0])}}
