"""A model's config.pbtxt as the JSON that its script is given, and as settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from panglot.errors import StartError
from panglot.packages import pbtxt, triton_config
from panglot.packages.pbtxt import Message

NAME = "config.pbtxt"
REPEATED = frozenset({
    "input", "output", "dims", "shape", "instance_group", "gpus", "preferred_batch_size", "versions", "profile",
    "model_warmup", "batch_input", "batch_output", "source_input", "op", "agents",
})  # fmt: skip
MAPS = frozenset({"parameters", "metric_tags", "cc_model_filenames", "inputs"})
BACKEND = "python"
ENVIRONMENT = "EXECUTION_ENV_PATH"


class Configuration(NamedTuple):
    """What a config.pbtxt says: as its script is given it, and as settings."""

    fields: dict[str, Any]
    """With Triton's names."""
    defaults: dict[str, Any]
    """Workers, devices and batches; panglot.toml and flags may say otherwise."""


def read(folder: Path) -> Configuration:
    """The configuration of the model in a folder; empty without one. Raises StartError."""
    path = folder / NAME
    if not path.is_file():
        return Configuration({}, {})
    message = triton_config.read(path)
    backend = message.one("backend", BACKEND)
    if backend != BACKEND:
        raise StartError(f"its backend is {backend}, and the script is for {BACKEND}", file=str(path),
                         fix=f'backend: "{BACKEND}"')  # fmt: skip
    rows, delay = triton_config.tensors(message, path)["max_batch_size"], triton_config.delay_ms(message, path)
    defaults = {
        **triton_config.instances(message, path),
        **({"max_wait_ms": delay} if delay else {}),
        **({"max_batch": rows} if rows else {}),
    }
    return Configuration(_fields(message), defaults)


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
