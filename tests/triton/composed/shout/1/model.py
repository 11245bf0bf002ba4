"""A text in capitals, and a number behind it."""

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(*(tensor.as_numpy()[0] for tensor in request.inputs())) for request in requests]

    def answer(self, text, number):
        if text == b"token 7":
            return pb_utils.InferenceResponse(error=pb_utils.TritonError("seven is not said"))
        loud = np.array([f"{text.decode().upper()} OF {number}"], object)
        return pb_utils.InferenceResponse([pb_utils.Tensor("LOUD", loud)])
