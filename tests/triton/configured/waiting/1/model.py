"""Takes as long as a request says."""

import time

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        print("begins", flush=True)
        nap = pb_utils.get_input_tensor_by_name(requests[0], "NAP").as_numpy()
        time.sleep(float(nap.ravel()[0]))
        return [pb_utils.InferenceResponse([pb_utils.Tensor("NAP", nap)])]
