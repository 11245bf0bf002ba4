"""Flowers by their petals: several requests in a call, and measurements of one's own."""

import json
import time

from ts.metrics.dimension import Dimension
from ts.metrics.metric_type_enum import MetricTypes

_models = {}


def _initialize(context):
    with open(context.system_properties["model_dir"] + "/flowers.json") as file:
        _models["means"] = json.load(file)
    metrics = context.metrics
    _models["rows"] = metrics.add_metric_to_cache(
        metric_name="FlowerRows", unit="count", dimension_names=["ModelName", "Level"], metric_type=MetricTypes.COUNTER
    )


def _nearest(petals):
    def distance(name):
        return sum((mean - value) ** 2 for mean, value in zip(_models["means"][name], petals, strict=True))

    return min(sorted(_models["means"]), key=distance)


def handle(data, context):
    if not _models:
        _initialize(context)
    if data is None:
        return None
    began = time.perf_counter()
    answers = []
    for index, row in enumerate(data):
        petals = row.get("data") or row.get("body")
        if isinstance(petals, (bytes, bytearray)):
            petals = json.loads(petals)
        if not isinstance(petals, list):
            context.set_response_status(400, "Bad Request", index)
            answers.append({"error": "send a list of numbers"})
            continue
        name = _nearest(petals)
        context.metrics.add_counter("Flowers", 1, idx=index, dimensions=[Dimension("Flower", name)])
        answers.append({"flower": name, "of": len(data)})
    _models["rows"].add_or_update(len(data), [context.model_name, "Model"])
    context.metrics.add_time("FlowerTime", (time.perf_counter() - began) * 1000, idx=None, unit="ms")
    return answers
