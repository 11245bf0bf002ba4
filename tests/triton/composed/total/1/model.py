"""The sum of all that it is given."""

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self.answered(request) for request in requests]

    def answered(self, request):
        total = sum(tensor.as_numpy().sum(1, keepdims=True) for tensor in request.inputs())
        return pb_utils.InferenceResponse([pb_utils.Tensor("TOTAL", total)])
