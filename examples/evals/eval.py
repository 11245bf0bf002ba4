"""Reads the digit in a picture: white on black, of any size from 33 pixels up."""

import time

import numpy as np
from evals.utils import (
    CTX,
    _make_synset,
    create_net_handler,
    monitor_rt_forward,
    monitor_rt_load,
    net_inference_handler,
)
from evals.utils.error import ErrorBase
from evals.utils.image import load_image

CELLS = 8


@create_net_handler
def create_net(configs):
    weights = np.load(configs["model_files"]["digits.npz"])
    labels = [name for _, name in _make_synset(configs["custom_files"]["labels.csv"])]
    CTX.logger.info("%s knows %d digits", CTX.app, len(labels), extra={"reqid": ""})
    return {"weights": weights["weights"], "bias": weights["bias"], "labels": labels}, 0, ""


@net_inference_handler
def net_inference(model, reqs):
    rets = [None] * len(reqs)
    inputs = {}
    with Timed(monitor_rt_load(len(reqs))):
        for number, req in enumerate(reqs):
            try:
                inputs[number] = cells(load_image(req["data"]["uri"], body=req["data"]["body"]))
            except ErrorBase as error:
                rets[number] = {"code": error.code, "message": str(error), "result": {}}
    if inputs:
        with Timed(monitor_rt_forward(len(inputs))):
            scores = softmax(np.array(list(inputs.values())) @ model["weights"] + model["bias"])
        for number, row in zip(inputs, scores, strict=True):
            rets[number] = {
                "code": 0,
                "message": "",
                "result": best(model, row, reqs[number]["params"].get("limit", 1)),
            }
    return rets, 0, ""


class Timed:
    """Observes how long its block takes."""

    def __init__(self, histogram):
        self.histogram = histogram

    def __enter__(self):
        self.began = time.time()

    def __exit__(self, *exc):
        self.histogram.observe(time.time() - self.began)


def cells(picture):
    """The brightness of 8 x 8 cells."""
    grey = picture.mean(axis=2)
    rows, columns = (np.arange(CELLS + 1) * side // CELLS for side in grey.shape)
    sums = np.add.reduceat(np.add.reduceat(grey, rows[:-1], axis=0), columns[:-1], axis=1)
    return (sums / np.outer(np.diff(rows), np.diff(columns)) / 255).ravel()


def softmax(scores):
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def best(model, row, limit):
    order = np.argsort(-row)[:limit]
    return {
        "confidences": [{"class": model["labels"][n], "index": int(n), "score": round(float(row[n]), 3)} for n in order]
    }
