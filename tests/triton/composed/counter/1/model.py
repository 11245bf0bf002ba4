"""Sends words one after the other, as a language model does; a negative number: an error in between; 99: nothing."""

import threading
import time

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            number = int(request.inputs()[0].as_numpy()[0])
            threading.Thread(target=self.send, args=(request.get_response_sender(), number), daemon=True).start()

    def send(self, sender, number):
        if number < 0:
            sender.send(pb_utils.InferenceResponse(error=pb_utils.TritonError("not so many")))
        while number == 99 and not sender.is_cancelled():
            time.sleep(0.01)
        for index in range(abs(number)):
            if sender.is_cancelled():
                print("counter cancelled", flush=True)
                break
            token = np.array([f"token {index}"], object)
            sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("TOKEN", token)]))
            if number > 100:
                time.sleep(0.01)
        sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
