"""Several orders in a call."""

import json

import acts
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        acts.load()

    def execute(self, requests):
        texts = [pb_utils.get_input_tensor_by_name(request, "ORDER").as_numpy()[0, 0] for request in requests]
        answers = acts.act_all([json.loads(text) for text in texts])
        rows = [np.array([[answer["id"], answer["twice"]]], np.float64) for answer in answers]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("RESULT", row)]) for row in rows]
