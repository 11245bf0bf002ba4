import json
import time

import numpy as np
import triton_python_backend_utils as pb_utils

from . import words


class TritonPythonModel:
    """What one call of a model may do, by a word."""

    @staticmethod
    def auto_complete_config(config):
        known = config.as_dict()
        assert (known["input"], known["output"], known["parameters"]) == ([], [], {})
        for name, kind in (("WORD", "TYPE_STRING"), ("N", "TYPE_INT32"), ("B", "TYPE_BF16")):
            config.add_input({"name": name, "data_type": kind, "dims": [-1], "optional": True})
        config.add_output({"name": "TEXT", "data_type": "TYPE_STRING", "dims": [1]})
        config.add_output({"name": "B", "data_type": "TYPE_BF16", "dims": [-1]})
        config.set_max_batch_size(4)
        config.set_dynamic_batching()
        return config

    def execute(self, requests):
        return [self.answered(request) for request in requests]

    def answered(self, request):
        word = pb_utils.get_input_tensor_by_name(request, "WORD")
        word = word.as_numpy()[0][0].decode() if word else "none"
        if word == "code":
            code = int(pb_utils.get_input_tensor_by_name(request, "N").as_numpy()[0][0])
            return pb_utils.InferenceResponse(error=pb_utils.TritonError(f"code {code}", code))
        tensors = []
        text = f"{len(request.inputs())} inputs, {request.parameters()}"
        if word == "words":
            text = json.dumps(words.said(pb_utils))
        elif word == "wait":
            print("waiting", flush=True)
            while not request.is_cancelled():
                time.sleep(0.01)
            print("cancelled", flush=True)
        elif word == "object":
            text = {"a": 5}
        elif word == "bf16":
            given = pb_utils.get_input_tensor_by_name(request, "B")
            tensors = [pb_utils.Tensor("B", given.as_numpy() * 2)]
            text = f"{given.as_numpy().tolist()} {given.triton_dtype()}"
        tensors.append(pb_utils.Tensor("TEXT", np.array([[text]], object)))
        return pb_utils.InferenceResponse(tensors)
