"""A postprocessor: the word with the best score."""

import numpy as np
import triton_python_backend_utils as pb_utils

WORDS = np.array(["one", "two", "three"], object)


class TritonPythonModel:
    def execute(self, requests):
        return [self.answered(request) for request in requests]

    def answered(self, request):
        scores = pb_utils.get_input_tensor_by_name(request, "SCORES").as_numpy()
        tensors = [pb_utils.Tensor("WORD", WORDS[scores.argmax(1)].reshape(-1, 1))]
        # A step may leave an output out.
        if scores.max() > 0:
            tensors.append(pb_utils.Tensor("BEST", scores.max(1, keepdims=True)))
        return pb_utils.InferenceResponse(tensors)
