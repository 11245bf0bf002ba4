"""Calls the three models one after the other."""

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        values = request.inputs()[0].as_numpy()
        for name in ("first", "second", "third"):
            inputs = [pb_utils.Tensor("X", values)]
            response = pb_utils.InferenceRequest(model_name=name, requested_output_names=["Y"], inputs=inputs).exec()
            if response.has_error():
                return pb_utils.InferenceResponse(error=response.error())
            values = response.output_tensors()[0].as_numpy()
        return pb_utils.InferenceResponse([pb_utils.Tensor("Y", values)])
