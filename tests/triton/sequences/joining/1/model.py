"""The texts of each sequence so far, in one."""

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self.answered(request) for request in requests]

    def answered(self, request):
        text, ready, before = (
            pb_utils.get_input_tensor_by_name(request, name).as_numpy().item() for name in ("TEXT", "READY", "BEFORE")
        )
        joined = np.array([[before.decode() + text.decode()]], object)
        assert ready or joined.item() == "from the file: "
        return pb_utils.InferenceResponse([pb_utils.Tensor("JOINED", joined), pb_utils.Tensor("AFTER", joined)])
