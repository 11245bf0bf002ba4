"""A scoring script whose run() gets the text of the body, and does what that asks for."""

import json
import os
import time

import numpy as np
from azureml_inference_server_http.api.aml_response import AMLResponse

weights = None


def init():
    global weights
    with open(os.path.join(os.getenv("AZUREML_MODEL_DIR"), "model/weights.json")) as file:
        weights = json.load(file)


def run(data, request_headers):
    try:
        order = json.loads(data)
    except ValueError:
        return {"got": data, "type": type(data).__name__}
    op = order.get("op", "") if isinstance(order, dict) else ""
    if op == "text":
        return json.dumps({"a": 1})
    if op == "none":
        return None
    if op == "set":
        return {1, 2}
    if op == "numpy":
        return {"scores": np.ones(2)}
    if op == "nan":
        return {"twice": float("nan")}
    if op == "raise":
        raise ValueError("a secret of the script")
    if op == "weights":
        return weights
    if op == "raw":
        return AMLResponse(b"raw", 201, {"X-A": "1,2"})
    if op == "text response":
        return AMLResponse("caf\u00e9", 200, {"Content-Type": "text/plain; charset=utf-8"})
    if op == "failed response":
        return AMLResponse({"e": 1}, 500, json_str=True)
    if op == "no content":
        return AMLResponse("", 204)
    if op == "empty response":
        return AMLResponse(None, 200)
    if op == "headers":
        return sorted(request_headers)
    if op == "header":
        return request_headers.get(order["name"])
    if op == "stream":
        return AMLResponse((b"part %d\n" % n for n in range(3)), 200, {"Content-Type": "text/plain"})
    if op == "sleep":
        time.sleep(order["seconds"])
    return {"got": order, "type": type(data).__name__}
