"""Asks a model of the server, and passes on one output, or the error."""

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self.answered(request) for request in requests]

    def answered(self, request):
        model, tensor, output, text = (given.as_numpy() for given in request.inputs())
        call = pb_utils.InferenceRequest(
            request_id=request.request_id(),
            model_name=model[0].decode(),
            requested_output_names=[output[0].decode()],
            inputs=[pb_utils.Tensor(tensor[0].decode(), text)],
        )
        response = call.exec()
        if response.has_error():
            return pb_utils.InferenceResponse(error=response.error())
        (given,) = response.output_tensors()
        return pb_utils.InferenceResponse([pb_utils.Tensor("ANSWER", np.array(given.as_numpy().ravel(), object))])
