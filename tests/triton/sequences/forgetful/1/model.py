"""The sum of each sequence so far, by the controls alone."""

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.sums = {}

    def execute(self, requests):
        ready = [bool(self.value(request, "READY")) for request in requests]
        print("a call with", "".join("r" if each else "-" for each in ready), flush=True)
        return [self.answered(request) for request in requests]

    def value(self, request, name):
        return pb_utils.get_input_tensor_by_name(request, name).as_numpy().item()

    def answered(self, request):
        total = 0
        if self.value(request, "READY"):
            name = self.value(request, "CORRID")
            if self.value(request, "START"):
                self.sums[name] = 0
            self.sums[name] += self.value(request, "X")
            total = self.sums[name]
            if self.value(request, "END"):
                del self.sums[name]
        return pb_utils.InferenceResponse([pb_utils.Tensor("SUM", np.array([[total]], np.int32))])
