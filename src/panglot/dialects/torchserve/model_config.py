"""model-config.yaml of a model: which of Panglot's settings its values stand for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from panglot.dialects.torchserve.properties import Properties
from panglot.errors import StartError
from panglot.packages import yaml_file
from panglot.packages.yaml_file import YamlFile
from panglot.settings import counts
from panglot.settings.counts import WorkerCount

NAMES = ("model-config.yaml", "model_config.yaml", "model-config.yml", "model_config.yml")
RESPONSE_TIMEOUT = 120
"""Seconds that the platform gives a call."""
NUMBERS = (
    "batchSize", "maxBatchDelay", "minWorkers", "maxWorkers", "responseTimeout", "startupTimeout", "jobQueueSize",
)  # fmt: skip
REFUSED = {
    "sequenceBatching": "sequences, which keep a client's requests with one worker, are not served",
    "continuousBatching": "continuous batching, where a handler is called again for running requests, is not served",
}
"""Keys that ask for a scheduler which Panglot does not have."""


def read(file: Path) -> YamlFile:
    """A configuration, checked. Raises StartError, with the line, for a value that is wrong or not served."""
    config = yaml_file.read(file)
    for key, problem in REFUSED.items():
        if config.table.get(key):
            raise config.error(problem, key, fix=f"take {key} away, or keep this model on TorchServe")
    for key in NUMBERS:
        value = config.table.get(key)
        # `type` and not `isinstance`: in Python, true is a whole number too.
        if value is not None and (type(value) is not int or value < 0):
            raise config.error(f"{key} must be a whole number from 0", key)
    return config


def settings(table: Mapping[str, Any], properties: Properties, name: str, version: str) -> dict[str, Any]:
    """The settings that a model's YAML stands for, completed by config.properties."""
    of_server = properties.model(name, version)
    known = {key: table.get(key, of_server.get(key)) for key in NUMBERS}
    numbers = {key: value for key, value in known.items() if type(value) is int}
    timeout = numbers.get("responseTimeout") or properties.number("default_response_timeout") or RESPONSE_TIMEOUT
    # One request in a call, unless the configuration asks for more: many handlers look at the first one alone.
    chosen: dict[str, Any] = {
        "strict_results": True, "timeout": float(timeout), "max_batch": max(1, numbers.get("batchSize", 1)),
    }  # fmt: skip
    if numbers.get("maxBatchDelay") and chosen["max_batch"] > 1:
        chosen["max_wait_ms"] = float(numbers["maxBatchDelay"])
    if numbers.get("startupTimeout"):
        chosen["load_timeout"] = float(numbers["startupTimeout"])
    queue = numbers.get("jobQueueSize") or properties.number("job_queue_size")
    if queue:
        chosen["queue"] = queue
    workers = _workers(numbers, properties)
    if workers is not None:
        chosen["workers"] = workers
    device = _device(table)
    if device:
        chosen["device"] = device
    return {**chosen, **_of_server(properties)}


def _workers(numbers: Mapping[str, int], properties: Properties) -> WorkerCount | None:
    least = numbers.get("minWorkers") or properties.number("default_workers_per_model") or 0
    most = max(numbers.get("maxWorkers") or least, least)
    if not most:
        return None
    return (
        counts.exactly(most) if least in (0, most) and not (least == 0 and most > 1) else WorkerCount(least or 1, most)
    )


def _device(table: Mapping[str, Any]) -> str:
    """The devices for `--device`: the platform's `deviceType` and `deviceIds`."""
    if table.get("deviceType") == "cpu":
        return "cpu"
    ids = table.get("deviceIds")
    if table.get("deviceType") == "gpu" and isinstance(ids, list) and all(type(entry) is int for entry in ids):
        return ",".join(f"cuda:{entry}" for entry in ids)
    return ""


def _of_server(properties: Properties) -> dict[str, Any]:
    """The settings that config.properties has for the whole server."""
    chosen: dict[str, Any] = {}
    size = properties.number("max_request_size")
    if size:
        chosen["max_body"] = size
    port = properties.port("inference_address")
    if port:
        chosen["port"] = port
    if properties.truth("install_py_dep_per_model", False):
        chosen["install"] = True
    origin = properties.text("cors_allowed_origin")
    if origin:
        chosen["cors_origin"] = (origin,)
    return chosen


def refuse_unknown_device(table: Mapping[str, Any], file: Path) -> None:
    """Raise StartError for a `parallelType`, which needs torchrun."""
    kind = table.get("parallelType")
    if kind and kind not in ("custom",):
        problem = f"parallelType {kind} starts several processes of torchrun for one worker, which is not served"
        raise StartError(
            problem, file=str(file), fix="parallelType: custom, where the handler spreads its model itself"
        )
