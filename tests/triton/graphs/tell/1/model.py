"""Gives back its text, and tells the id of its request."""

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self.answered(request) for request in requests]

    def answered(self, request):
        told = np.array([request.request_id()], object)
        same = pb_utils.get_input_tensor_by_name(request, "TEXT").as_numpy()
        return pb_utils.InferenceResponse([pb_utils.Tensor("SAME", same), pb_utils.Tensor("ID", told)])
