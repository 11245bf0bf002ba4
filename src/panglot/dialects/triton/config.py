"""A model's config.pbtxt as the JSON that its script is given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from panglot.errors import StartError
from panglot.packages import pbtxt
from panglot.packages.pbtxt import Message

NAME = "config.pbtxt"
REPEATED = frozenset({
    "input", "output", "dims", "shape", "instance_group", "gpus", "preferred_batch_size", "versions", "profile",
    "model_warmup", "batch_input", "batch_output", "source_input", "op", "agents",
})  # fmt: skip
MAPS = frozenset({"parameters", "metric_tags", "cc_model_filenames", "inputs"})
REFUSED = {
    "sequence_batching": "sequences of requests are not kept together here",
    "ensemble_scheduling": "ensembles are not served here",
}
BACKEND = "python"
ENVIRONMENT = "EXECUTION_ENV_PATH"


def read(folder: Path) -> dict[str, Any]:
    """The configuration of the model in a folder, with Triton's names; empty without one. Raises StartError."""
    path = folder / NAME
    if not path.is_file():
        return {}
    message = pbtxt.read(path)
    for name in message:
        if name in REFUSED:
            raise StartError(f"{name}: {REFUSED[name]}", file=str(path))
    config = _fields(message)
    backend = config.get("backend", BACKEND)
    if backend != BACKEND:
        raise StartError(f"its backend is {backend}, and the script is for {BACKEND}", file=str(path),
                         fix=f'backend: "{BACKEND}"')  # fmt: skip
    _check(config, path)
    return config


def _check(config: dict[str, Any], path: Path) -> None:
    size = config.get("max_batch_size", 0)
    if type(size) is not int or size < 0:
        raise StartError("max_batch_size must be a whole number", file=str(path))
    for tensor in (*config.get("input", ()), *config.get("output", ())):
        known = isinstance(tensor, dict) and tensor.get("name") and str(tensor.get("data_type")).startswith("TYPE_")
        if not known or not all(type(dim) is int and dim >= -1 for dim in tensor.get("dims", ())):
            raise StartError("a tensor needs a name, a data_type such as TYPE_FP32, and dims", file=str(path))
    for group in config.get("instance_group", ()):
        if not isinstance(group, dict) or not all(
            _is_count(n) for n in (group.get("count", 1), *group.get("gpus", ()))
        ):
            raise StartError("instance_group is a message with count and gpus, which are whole numbers", file=str(path))
    batching = config.get("dynamic_batching", {})
    if not isinstance(batching, dict) or not _is_count(batching.get("max_queue_delay_microseconds", 0)):
        problem = "dynamic_batching is a message; max_queue_delay_microseconds in it is a whole number"
        raise StartError(problem, file=str(path))


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _fields(message: Message) -> dict[str, Any]:
    return {name: _field(name, values) for name, values in message.items()}


def _field(name: str, values: list[Any]) -> Any:
    if name in MAPS:
        entries = [_fields(value) for value in values if isinstance(value, Message)]
        return {str(entry.get("key", "")): entry.get("value") for entry in entries}
    plain = [_value(value) for value in values]
    return plain if name in REPEATED else plain[-1]


def _value(value: Any) -> Any:
    if isinstance(value, Message):
        return _fields(value)
    if isinstance(value, pbtxt.Word):
        return {"true": True, "false": False}.get(str(value), str(value))
    return value
