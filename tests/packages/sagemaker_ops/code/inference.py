"""Does what the order in a request says, in the function that the order names."""

import json
import os

from helpers import double
from sagemaker_inference import content_types, decoder, encoder, environment, errors

PROGRAM = os.environ["SAGEMAKER_PROGRAM"]
happened = []


def pre_model_fn(model_dir):
    happened.append("pre_model_fn")


def model_fn(model_dir):
    happened.append("model_fn")
    with open(os.path.join(model_dir, "weights.json")) as file:
        return json.load(file)


def model_warmup_fn(model_dir, model):
    happened.append("model_warmup_fn")


def input_fn(input_data, content_type):
    about = {"type": type(input_data).__name__, "content_type": content_type, "length": len(input_data)}
    if not input_data or content_type not in ("application/json", "application/json; charset=utf-8"):
        return {"op": "about", "about": about}
    order = json.loads(input_data)
    if order.get("op") == "raise in input_fn":
        raise KeyError("input")
    return {**order, "about": about}


def predict_fn(data, model, context):
    op = data["op"]
    if op == "raise":
        raise ValueError(data["text"])
    if op == "silent":
        raise ValueError()
    if op == "toolkit":
        raise errors.BaseInferenceToolkitError(418, "m", "p")
    if op == "headers":
        names = ("Content-Type", "X-Amzn-SageMaker-Custom-Attributes", "X-Amzn-SageMaker-Inference-Id")
        return {**data, "result": {name: context.get_request_header(0, name) for name in names}}
    if op == "answer headers":
        context.set_response_header(0, "X-Amzn-SageMaker-Custom-Attributes", "trace=7")
        context.set_response_status(202, "Accepted")
    if op == "properties":
        shown = {name: context.system_properties[name] for name in ("gpu_id", "batch_size", "server_name")}
        return {**data, "result": {**shown, "id": context.get_request_id()}}
    if op == "happened":
        return {**data, "result": happened}
    if op == "environment":
        same = os.path.samefile(environment.model_dir, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        return {**data, "result": [PROGRAM, same, __name__, environment.Environment().module_name]}
    if op == "sum":
        return {**data, "result": sum(data["values"]) * double(model["factor"])}
    if op == "codecs":
        array = decoder.decode("1,2\n3,4", content_types.CSV)
        return {**data, "result": encoder.encode(array * 2, content_types.JSON)}
    return data


def output_fn(prediction, accept):
    op = prediction["op"]
    if op == "tuple":
        return "<x/>", "text/x"
    if op == "accept":
        return accept
    if op == "bytes":
        return b"\x00\x01"
    if op in ("dict", "list", "none", "number"):
        return {"dict": {"a": 1}, "list": [1, 2], "none": None, "number": 7}[op]
    if op == "set":
        return {1, 2}
    return json.dumps(prediction.get("result", prediction.get("about")))
