import threading
import time

import numpy as np
import triton_python_backend_utils as pb_utils

LAST = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL


class TritonPythonModel:
    """Decoupled, with batches: threads answer while the next call begins."""

    def execute(self, requests):
        print(f"a call with {len(requests)}", flush=True)
        for request in requests:
            how = pb_utils.get_input_tensor_by_name(request, "HOW").as_numpy()[0][0].decode()
            number = int(pb_utils.get_input_tensor_by_name(request, "N").as_numpy()[0][0])
            sender = request.get_response_sender()
            if how == "thread":
                threading.Thread(target=self.slowly, args=(sender, number)).start()
            elif how == "wait":
                threading.Thread(target=self.wait, args=(request, sender)).start()
            elif how == "error":
                sender.send(self.response(1))
                sender.send(
                    pb_utils.InferenceResponse(error=pb_utils.TritonError("in between", pb_utils.TritonError.NOT_FOUND))
                )
                sender.send(self.response(2), LAST)
            elif how == "late":
                sender.send(self.response(1), LAST)
                raise ValueError("raised behind the last response")
            elif how == "closed":
                sender.send(self.response(1), LAST)
                try:
                    sender.send(self.response(2))
                except pb_utils.TritonModelException as error:
                    print(error, flush=True)
            elif how == "returns":
                return [self.response(1)]
            else:
                for at in range(number):
                    sender.send(self.response(at))
                sender.send(flags=LAST)
        return None

    def slowly(self, sender, number):
        time.sleep(1)
        sender.send(self.response(number), LAST)

    def wait(self, request, sender):
        print("waiting", flush=True)
        while not (request.is_cancelled() and sender.is_cancelled()):
            time.sleep(0.01)
        print("cancelled", flush=True)
        sender.send(flags=LAST)

    def response(self, number):
        texts = np.array([[f"number {number}"]], object)
        return pb_utils.InferenceResponse(
            [pb_utils.Tensor("OUT", np.array([[number]], np.int32)), pb_utils.Tensor("TEXT", texts)]
        )
