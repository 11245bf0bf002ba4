"""Says in which shapes it is given its inputs, and counts."""

import json

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.version = args["model_version"]
        kinds = pb_utils.MetricFamily
        self.calls = kinds("shaped_calls", "calls of the model", kinds.COUNTER).Metric({"version": self.version})
        self.last = kinds("shaped_last", "the last number", kinds.GAUGE).Metric()
        self.sizes = kinds("shaped_sizes", "how many requests", kinds.HISTOGRAM).Metric(buckets=[1.0, 2.0])
        # A name of the server's own: it is not shown, and the log says so.
        kinds("panglot_requests_total", "", kinds.COUNTER).Metric().increment(1000)

    def execute(self, requests):
        self.calls.increment(1)
        self.sizes.observe(len(requests))
        return [self.answered(request) for request in requests]

    def answered(self, request):
        given = {tensor.name(): tensor.as_numpy() for tensor in request.inputs()}
        shapes = {name: list(array.shape) for name, array in given.items()}
        print("given", json.dumps(shapes), given["SQUARE"].ravel().tolist(), flush=True)
        self.last.set(int(given["SCALAR"][0]))
        said = np.array([[json.dumps(shapes)]] * len(given["SQUARE"]), object)
        outputs = [("SHAPES", said), ("TWICE", given["SQUARE"] * 2), ("NUMBER", given["SCALAR"])]
        return pb_utils.InferenceResponse([pb_utils.Tensor(name, array) for name, array in outputs])
