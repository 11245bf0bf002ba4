"""What scripts import as `from evals.utils import ...`, or with a star.

There is no `__all__`, on purpose: scripts rely on modules that come along with the star.
"""

import csv
import functools  # noqa: F401
import json
import logging  # noqa: F401
import os
import threading  # noqa: F401
import traceback  # noqa: F401

from evals.utils import error  # noqa: F401
from evals.utils._context import CTX  # noqa: F401
from evals.utils._handlers import (  # noqa: F401
    create_net_handler,
    net_inference_handler,
    net_init_handler,
    net_preprocess_handler,
)
from evals.utils._prometheus import CollectorRegistry, Histogram, generate_latest
from evals.utils.error import ErrorConfig, ErrorFileNotExist
from evals.utils.logger import logger  # noqa: F401

REGISTRY = CollectorRegistry()
MONITOR_RESPONSETIME = Histogram(
    "response_time",
    "Response time of requests",
    namespace="ava",
    subsystem="serving_eval",
    labelnames=("method", "error", "number"),
    buckets=(0,) + tuple(n * unit for unit in (0.01, 0.1, 1) for n in range(1, 10)) + (10, 20, 30, 40, 50, 60),
    registry=REGISTRY,
)


def metrics():
    """The histograms of this process as Prometheus text."""
    return generate_latest(REGISTRY)


def _monitor(method, number, problem):
    return MONITOR_RESPONSETIME.labels("py." + method, problem, str(number))


def monitor_rt_load(number=1, error="NIL"):  # noqa: F811
    return _monitor("load", number, error)


def monitor_rt_transform(number=1, error="NIL"):  # noqa: F811
    return _monitor("transform", number, error)


def monitor_rt_forward(number=1, error="NIL"):  # noqa: F811
    return _monitor("forward", number, error)


def monitor_rt_post(number=1, error="NIL"):  # noqa: F811
    return _monitor("post", number, error)


def monitor_rt_inference(number=1, error="NIL"):  # noqa: F811
    return _monitor("inference", number, error)


def value_check(configs, key, must=True, default=None):
    """The value of a key; one that is None counts as missing. Raises ErrorConfig when it is missing and `must` be."""
    value = configs.get(key)
    if value is not None:
        return value
    if must:
        raise ErrorConfig(key)
    return default


def file_check(configs, key, must=True):
    """The path under a key, or None. Raises ErrorConfig when missing, ErrorFileNotExist when there is no such file."""
    path = configs.get(key)
    if path is None:
        if must:
            raise ErrorConfig(key)
        return None
    if not os.path.isfile(path):
        raise ErrorFileNotExist(path)
    return path


def parse_params_file(name):
    """The prefix and the epoch in the path of an MXNet file: `net-0012.params` is net and 12, without a number 0."""
    folder, base = os.path.split(name)
    prefix, _, epoch = os.path.splitext(base)[0].rpartition("-")
    if not prefix or not epoch.isdecimal():
        return os.path.splitext(name)[0], 0
    return os.path.join(folder, prefix), int(epoch)


def parse_crop_size(configs, model_params=None, custom_values=None, default_image_width=0, default_image_height=0):
    """Width and height of the crop: of the model's `cropSize`, else of the configuration, else the defaults."""
    size = (model_params or {}).get("cropSize")
    if size:
        width, _, height = str(size).partition("x")
        return int(width), int(height or width)
    for source in (configs, custom_values or {}):
        if source.get("image_width"):
            return int(source["image_width"]), int(source.get("image_height") or source["image_width"])
    return default_image_width, default_image_height or default_image_width


def infer_input_unmarshal(model, args):
    """The requests in the JSON text a script of the first generation gets."""
    return json.loads(args)["reqs"]


def infer_output_marshal(ret, headers=None):
    """The JSON text a script of the first generation returns. The result of each item is JSON text itself."""
    items = [
        dict(item, result=json.dumps(item["result"])) if isinstance(item, dict) and "result" in item else item
        for item in ret
    ]
    output = {"results": items}
    if headers is not None:
        output["headers"] = headers.marshal()
    return json.dumps(output)


def _make_synset(path):
    """The rows of a CSV file."""
    with open(path, newline="", encoding="utf-8-sig") as file:
        return list(csv.reader(file))


def _make_tag(path):
    with open(path, encoding="utf-8-sig") as file:
        return json.load(file)
