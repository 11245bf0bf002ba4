"""Adds its number to what it is given. A first value below zero asks the model of that number for something else."""

import json
import os
import time

import numpy
import triton_python_backend_utils as pb_utils

WAIT, REFUSE, DIE = -10, -20, -30


class TritonPythonModel:
    def initialize(self, args):
        config = json.loads(args["model_config"])
        self.name, self.number = config["name"], int(config["parameters"]["number"]["string_value"])

    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        values = request.inputs()[0].as_numpy()
        wish = int(values[0])
        if wish == WAIT - self.number:
            print(self.name, "waits", flush=True)
            for _ in range(400):
                if request.is_cancelled():
                    print(self.name, "cancelled", flush=True)
                    break
                time.sleep(0.05)
        elif wish == REFUSE - self.number:
            return pb_utils.InferenceResponse(error=pb_utils.TritonError("not that"))
        elif wish == DIE - self.number:
            os._exit(1)
        # In place, which no other model may see.
        values[1:] += numpy.float32(self.number)
        return pb_utils.InferenceResponse([pb_utils.Tensor("Y", values)])
