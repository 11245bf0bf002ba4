"""The meaning of Triton's config.pbtxt for Panglot: versions, batches, workers, devices, and tensors."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

from panglot.errors import StartError
from panglot.packages.config_pbtxt import pbtxt, triton_fields
from panglot.packages.config_pbtxt.pbtxt import Message
from panglot.packages.model_folder import FoundModel
from panglot.packages.package import Package
from panglot.settings.counts import exactly

MESSAGES = frozenset({
    "input", "output", "instance_group", "dynamic_batching", "version_policy", "parameters", "model_warmup",
    "sequence_batching",
})  # fmt: skip
TYPES = {"TYPE_STRING": "BYTES"}
LATEST = 1
"""How many versions Triton serves where the policy does not say."""


def read(path: Path) -> Message:
    """The configuration. Raises StartError for one that is wrong, or requires something that Panglot does not do."""
    config = pbtxt.read(path)
    for name, values in config.items():
        if name in MESSAGES and not all(isinstance(value, Message) for value in values):
            problem = f"{name} must be a message: {name} {{ ... }}"
            raise StartError(problem, file=str(path), line=config.lines[name])
    triton_fields.check(config, path)
    return config


def chosen(entries: list[FoundModel], path: Path) -> list[FoundModel]:
    """The versions to serve by the policy of the configuration. Raises StartError."""
    policies = read(path).messages("version_policy")
    policy = policies[-1] if policies else Message()
    if "all" in policy:
        return entries
    if "specific" in policy:
        wanted = [str(version) for specific in policy.messages("specific") for version in specific.get("versions", [])]
        known = [entry.version for entry in entries]
        missing = [version for version in wanted if version not in known]
        if missing:
            raise StartError(f"version_policy names version {missing[0]}, and there is none", file=str(path))
        return [entry for entry in entries if entry.version in wanted]
    latest = policy.messages("latest")
    count = _whole(latest[-1], "num_versions", path, LATEST) if latest else LATEST
    return entries[-max(1, count) :]


def applied(package: Package, path: Path, name: str) -> Package:
    """The package, completed by its configuration. Its own panglot.toml wins over it. Raises StartError."""
    config = read(path)
    if config.one("name", name) != name:
        raise StartError(f"name is '{config.one('name')}', and the folder is '{name}'", file=str(path),
                         fix=f'name: "{name}"')  # fmt: skip
    declared = tensors(config, path)
    rows = declared["max_batch_size"]
    # Requests share a run only where the file has `dynamic_batching`. The dialect's own defaults win over these.
    shared = {"max_batch": rows, "max_wait_ms": delay_ms(config, path)} if rows and "dynamic_batching" in config else {}
    defaults = {**(shared or {"max_batch": 1}), **instances(config, path), **package.defaults}
    options = {**package.options, "tensors": declared}
    # Then the dialect has read the file itself, and has warned about fields without an effect.
    read_already = "config" in package.options
    return dataclasses.replace(
        package,
        defaults=defaults,
        options=options,
        reasons=tuple(dict.fromkeys((*package.reasons, f"{path.name} beside it"))),
        problems=(*package.problems, *(() if read_already else triton_fields.warnings(config, path, has_script=False))),
    )


def tensors(config: Message, path: Path) -> dict[str, Any]:
    """The inputs, outputs and batches of a configuration. Raises StartError."""
    rows = _whole(config, "max_batch_size", path, 0)
    return {
        "max_batch_size": rows,
        "inputs": [_tensor(tensor, rows, path) for tensor in config.messages("input")],
        "outputs": [_tensor(tensor, rows, path) for tensor in config.messages("output")],
    }


def delay_ms(config: Message, path: Path) -> float:
    """How long a batch waits for more requests. Raises StartError."""
    batching = config.messages("dynamic_batching")
    return _whole(batching[-1], "max_queue_delay_microseconds", path, 0) / 1000 if batching else 0


def waiting(config: Message, path: Path) -> dict[str, Any]:
    """The settings for waiting requests: how long, and how many. Raises StartError."""
    batching = config.messages("dynamic_batching")
    policies = batching[-1].messages("default_queue_policy") if batching else []
    if not policies:
        return {}
    values: dict[str, Any] = {}
    microseconds = _whole(policies[-1], "default_timeout_microseconds", path, 0)
    if microseconds and policies[-1].one("timeout_action", "REJECT") == "REJECT":
        values["queue_timeout"] = microseconds / 1e6
    most = _whole(policies[-1], "max_queue_size", path, 0)
    return {**values, "queue": most} if most else values


def instances(config: Message, path: Path) -> dict[str, Any]:
    """The settings for workers and their devices. Raises StartError."""
    groups = config.messages("instance_group")
    workers, devices = 0, []
    for group in groups:
        gpus = [_index(gpu, path, group.line) for gpu in group.get("gpus", [])]
        workers += _whole(group, "count", path, 1) * max(1, len(gpus))
        devices += ["cpu"] if group.one("kind") == "KIND_CPU" else [f"cuda:{gpu}" for gpu in gpus]
    values: dict[str, Any] = {"workers": exactly(workers)} if workers else {}
    if devices:
        values["device"] = ",".join(dict.fromkeys(devices))
    return values


def _tensor(tensor: Message, rows: int, path: Path) -> dict[str, Any]:
    """A tensor as clients see it; in a model with batches its first dimension is the batch."""
    name, kind = str(tensor.one("name")), str(tensor.one("data_type"))
    if not name or not kind.startswith("TYPE_"):
        raise StartError("a tensor needs a name and a data_type such as TYPE_FP32", file=str(path), line=tensor.line)
    shape = [_index(size, path, tensor.line, least=-1) for size in tensor.get("dims", [])]
    for reshape in tensor.messages("reshape"):
        other = [_index(size, path, reshape.line, least=-1) for size in reshape.get("shape", [])]
        if other.count(-1) != shape.count(-1) or (-1 not in shape and math.prod(other) != math.prod(shape)):
            problem = f"{name}: the reshape {other} has not as many elements as dims {shape}"
            raise StartError(problem, file=str(path), line=reshape.line or tensor.line)
    datatype = TYPES.get(kind, kind.removeprefix("TYPE_"))
    optional = {"optional": True} if str(tensor.one("optional")) == "true" else {}
    return {"name": name, "datatype": datatype, "shape": [-1, *shape] if rows > 0 else shape, **optional}


def _whole(message: Message, name: str, path: Path, default: int) -> int:
    return _index(message.one(name, default), path, message.line, name)


def _index(value: object, path: Path, line: int, name: str = "this", least: int = 0) -> int:
    if not isinstance(value, int) or value < least:
        raise StartError(f"{name} must be a whole number, not {value}", file=str(path), line=line)
    return value
