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


def fail(order, headers):
    raise ValueError("a secret of the script")


def parts(order, headers):
    return AMLResponse((b"part %d\n" % n for n in range(3)), 200, {"Content-Type": "text/plain"})


def sleep(order, headers):
    time.sleep(order["seconds"])
    return "awake"


DOES = {
    "text": lambda order, headers: json.dumps({"a": 1}),
    "none": lambda order, headers: None,
    "set": lambda order, headers: {1, 2},
    "numpy": lambda order, headers: {"scores": np.ones(2)},
    "nan": lambda order, headers: {"twice": float("nan")},
    "letters": lambda order, headers: {"caf\u00e9": "\u4f60\u597d"},
    "keys": lambda order, headers: {1: "one", None: 2, 1.5: 3},
    "raise": fail,
    "weights": lambda order, headers: weights,
    "raw": lambda order, headers: AMLResponse(b"raw", 201, {"X-A": "1,2"}),
    "typed": lambda order, headers: AMLResponse("caf\u00e9", 200, {"Content-Type": "text/plain; charset=utf-8"}),
    "failed": lambda order, headers: AMLResponse({"e": 1}, 500, json_str=True),
    "marked": lambda order, headers: AMLResponse("bad", 400, run_function_failed=True),
    "no content": lambda order, headers: AMLResponse("", 204),
    "empty": lambda order, headers: AMLResponse(None, 200),
    "headers": lambda order, headers: sorted(headers),
    "header": lambda order, headers: headers.get(order["name"]),
    "stream": parts,
    "sleep": sleep,
    "exit": lambda order, headers: os._exit(1),
}


def run(data, request_headers):
    try:
        order = json.loads(data)
    except ValueError:
        return {"got": data, "type": type(data).__name__}
    does = DOES.get(order.get("op", "")) if isinstance(order, dict) else None
    return {"got": order, "type": type(data).__name__} if does is None else does(order, request_headers)
