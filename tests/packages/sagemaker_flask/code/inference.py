"""In the manner of the scikit-learn container: a model with `predict`, and a response of its own."""

import json

from sagemaker_containers.beta.framework import encoders, worker


class Doubles:
    def predict(self, data):
        if data.size == 5:
            raise ValueError("five is too many")
        return data * 2


def model_fn(model_dir):
    return Doubles()


def output_fn(prediction, accept):
    if accept == "application/x-shape":
        return worker.Response(json.dumps(list(prediction.shape)), mimetype=accept, status=203)
    return worker.Response(encoders.encode(prediction, accept), mimetype=accept)


def execution_parameters_fn():
    return worker.Response(json.dumps({"MaxConcurrentTransforms": 2}), mimetype="application/json")
