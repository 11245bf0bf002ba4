"""Passes each request on to a model of sequences, with its place in the sequence."""

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self.answered(request) for request in requests]

    def answered(self, request):
        number, model = request.inputs()
        print(f"passing on a request of sequence {request.correlation_id()}", flush=True)
        call = pb_utils.InferenceRequest(
            model_name=model.as_numpy()[0].decode(),
            requested_output_names=["SUM"],
            inputs=[number],
            correlation_id=request.correlation_id(),
            flags=request.flags(),
        )
        return call.exec()
