"""Sends what another model sends, as it comes."""

import threading

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            threading.Thread(target=self.forward, args=(request, request.get_response_sender()), daemon=True).start()

    def forward(self, request, sender):
        call = pb_utils.InferenceRequest(model_name="parts", requested_output_names=["PART"], inputs=request.inputs())
        for response in call.exec(decoupled=True):
            sender.send(response)
        sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
