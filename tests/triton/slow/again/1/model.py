"""Gives the text that it is given."""

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self.answered(request) for request in requests]

    def answered(self, request):
        text = request.inputs()[0].as_numpy()
        return pb_utils.InferenceResponse([pb_utils.Tensor("TEXT_AGAIN", text)])
