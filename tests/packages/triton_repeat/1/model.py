import json
import threading

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """One response for each number: from execute itself, or from a thread that execute starts."""

    def initialize(self, args):
        if not pb_utils.using_decoupled_model_transaction_policy(json.loads(args["model_config"])):
            raise pb_utils.TritonModelException("this model is decoupled")

    def execute(self, requests):
        for request in requests:
            how = pb_utils.get_input_tensor_by_name(request, "HOW").as_numpy()[0].decode()
            numbers = pb_utils.get_input_tensor_by_name(request, "IN").as_numpy()
            if how == "forget":
                continue
            if how == "raise":
                raise ValueError("a secret of the script")
            sender = request.get_response_sender()
            if how == "error":
                sender.send(
                    pb_utils.InferenceResponse(error=pb_utils.TritonError("not these")),
                    flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL,
                )
            elif how == "last":
                self.respond(sender, numbers[:-1], last=numbers[-1:])
            elif how == "thread":
                threading.Thread(target=self.respond, args=(sender, numbers)).start()
            else:
                self.respond(sender, numbers)

    def respond(self, sender, numbers, last=()):
        for number in numbers:
            if sender.is_cancelled():
                break
            sender.send(self.response(number))
        responses = [self.response(number) for number in last]
        sender.send(*responses, flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)

    def response(self, number):
        return pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([number], np.int32))])
