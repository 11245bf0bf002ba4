"""A tokenizer: how often each of four letters is in a text."""

import os
import time

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        print("letters of", len(requests), flush=True)
        return [self.answered(request) for request in requests]

    def answered(self, request):
        texts = [text.decode() for text in pb_utils.get_input_tensor_by_name(request, "TEXT").as_numpy().ravel()]
        if "refuse" in texts:
            error = pb_utils.TritonError("no such text", pb_utils.TritonError.INVALID_ARG)
            return pb_utils.InferenceResponse(error=error)
        if "raise" in texts:
            raise RuntimeError("a secret of the script")
        if "die" in texts:
            os._exit(3)
        if "wait" in texts:
            print("waiting", flush=True)
            until = time.monotonic() + 20
            while not request.is_cancelled() and time.monotonic() < until:
                time.sleep(0.01)
            print("cancelled" if request.is_cancelled() else "waited", flush=True)
        counts = np.array([[text.count(letter) for letter in "abcd"] for text in texts], np.float32)
        return pb_utils.InferenceResponse([pb_utils.Tensor("COUNTS", counts)])
