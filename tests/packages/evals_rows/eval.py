"""Returns whatever the request asks for, right or wrong."""

import sys
import threading
import time

import numpy as np
from evals.utils import CTX, create_net_handler, monitor_rt_forward, net_inference_handler, net_preprocess_handler
from evals.utils.error import *  # noqa: F403
from evals.utils.image import load_image

CALLS = []


@create_net_handler
def create_net(configs):
    print("data dir: stdout is nobody's channel")
    return {"configs": configs, "thread": threading.get_ident(), "init_id": CTX.reqID}, 0, "Success"


@net_preprocess_handler
def net_preprocess(model, req):
    case = req.get("params", {}).get("preprocess")
    if case == "refuse":
        return req, 406, "not this one"
    if case == "raise":
        raise ValueError("preprocess broke")
    return dict(req, params=dict(req.get("params", {}), preprocessed=True, had_params="params" in req)), 0, ""


def seen(model, req):
    data = req["data"]
    entries = data if isinstance(data, list) else [data]
    return {
        "group": isinstance(data, list),
        "uri": [entry["uri"] for entry in entries],
        "body": [entry["body"].decode("latin-1") for entry in entries],
        "attribute": [entry["attribute"] for entry in entries],
        "params": req["params"],
        "reqid": CTX.reqID,
        "init_id": model["init_id"],
        "app": CTX.app,
        "same_thread": model["thread"] == threading.get_ident(),
        "argv": sys.argv,
        "calls": CALLS[-8:],
    }


def good(result=None, **more):
    return dict({"code": 0, "message": "", "result": {} if result is None else result}, **more)


RESULTS = {
    "float32": np.float32(1.5),
    "float64": np.float64(1.5),
    "int64": np.int64(3),
    "array": np.zeros(3),
    "bytes": "caf\u00e9".encode(),
    "latin": b"caf\xe9",
    "nan": float("nan"),
    "infinity": [1.0, float("inf")],
    "text": '{"double": "encoded"}',
    "none": None,
    "object": object(),
    "html": "<b>&</b>",
    "large": 2**53 + 1,
}


@net_inference_handler
def net_inference(model, reqs):  # noqa: C901
    CALLS.append(len(reqs))
    params = reqs[0]["params"]
    case = params.get("case", "echo") if isinstance(params, dict) else "echo"
    monitor_rt_forward(len(reqs)).observe(0.015)
    if case == "sleep":
        time.sleep(params["seconds"])
    if case == "configs":
        return [good(dict(model["configs"], names=sorted(model["configs"]))) for _ in reqs], 0, ""
    if case == "whole":
        rets = {"rets": [good()], "none": None, "dict": {}, "list": []}[params.get("rets", "list")]
        return rets, params["code"], params["message"]
    if case == "shape":
        return {"two": ([good()], 0), "nothing": None, "four": ([], 0, "", 1), "text": "abcd"}[params["shape"]]
    if case == "raise":
        raise {"base": ErrorBase(400, "base"), "batch": ErrorOutOfBatchSize(4), "value": ValueError("caf\u00e9")}[  # noqa: F405
            params["error"]
        ]
    if case == "exit":
        sys.exit(2)
    if case == "argparse":
        import argparse

        argparse.ArgumentParser().parse_args()
    if case == "result":
        return [{"code": 0, "message": "", "result": RESULTS[params["result"]]} for _ in reqs], 0, ""
    if case == "rets":
        return [req["params"]["ret"] for req in reqs], 0, ""
    if case == "body":
        return [good({"lost": True}, body=b"\x00\x01raw", **params.get("more", {})) for _ in reqs], 0, None
    if case == "first":
        return [good(seen(model, reqs[0]))], 0, ""
    if case == "extra":
        return [good() for _ in range(len(reqs) + 1)], 0, ""
    if case == "image":
        return [image(req) for req in reqs], 0, ""
    if case == "kept":
        ret = model.setdefault("kept", good())
        return [ret], 0, ""
    return [good(seen(model, req)) for req in reqs], 0, ""


def image(req):
    try:
        picture = load_image(req["data"]["uri"], body=req["data"]["body"])
    except ErrorBase as error:  # noqa: F405
        return {"code": error.code, "message": str(error)}
    except Exception as error:
        return {"code": 599, "message": type(error).__module__ + "." + type(error).__name__}
    return good(list(picture.shape))
