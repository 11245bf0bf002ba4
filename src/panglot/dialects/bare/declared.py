"""`[[inputs]]` of a panglot.toml: facts about inputs that are not in the model file, and how images become numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from panglot.errors import StartError
from panglot.settings import suggestion, tomlfile
from panglot.settings.tomlfile import TomlFile

TABLE = "inputs"
DATATYPES = (
    "BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64", "FP16", "BF16", "FP32", "FP64",
    "BYTES",
)  # fmt: skip
KEYS = {
    "name": "text",
    "datatype": f"one of {', '.join(DATATYPES)}",
    "shape": "a list of whole numbers, -1 for any size",
    "picture": "true or false",
    "scale": "a number that every colour value is multiplied with",
    "mean": "a list of numbers, one for each colour",
    "std": "a list of numbers other than 0, one for each colour",
    "colours": "rgb, bgr or grey",
}
"""Every key of the table, with its kind in words."""
EXAMPLE = 'inputs = [{ name = "x", datatype = "FP32", shape = [-1, 4] }]'


def read(config: Path | None, kind: str, model: Path, configured: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The declared inputs, else the configured ones. Raises StartError for wrong ones, and where inputs are missing."""
    file = tomlfile.read(config) if config is not None else None
    inputs: Any = file.table.get(TABLE, []) if file is not None else []
    if file is not None:
        _check(file, inputs)
    inputs = inputs or configured
    if kind == "torchscript" and not (inputs and all("shape" in entry and "datatype" in entry for entry in inputs)):
        raise StartError(
            "a TorchScript file does not say what it takes",
            file=str(model),
            fix=f"declare each input in a panglot.toml beside it, or in Triton's config.pbtxt: {EXAMPLE}",
        )
    return [dict(entry) for entry in inputs]


def _check(file: TomlFile, inputs: Any) -> None:
    if not isinstance(inputs, list) or not all(isinstance(entry, dict) for entry in inputs):
        raise file.error("inputs is a list of tables", TABLE, fix=EXAMPLE)
    for entry in inputs:
        for key, value in entry.items():
            if key not in KEYS:
                raise file.error(f"unknown key '{key}' in [[inputs]]", TABLE, fix=suggestion(key, KEYS))
            if not _fits(key, value):
                raise file.error(f"{key} in [[inputs]] must be {KEYS[key]}", TABLE)
        if "name" not in entry:
            raise file.error("an input in [[inputs]] has no name", TABLE, fix=EXAMPLE)
    names = [entry["name"] for entry in inputs]
    if len(set(names)) < len(names):
        raise file.error("two inputs in [[inputs]] have the same name", TABLE)


def _fits(key: str, value: Any) -> bool:
    if key == "shape":
        return isinstance(value, list) and all(type(size) is int and size >= -1 for size in value)
    if key in ("mean", "std"):
        numbers = isinstance(value, list) and all(type(entry) in (int, float) for entry in value)
        return numbers and (key == "mean" or all(value))
    if key == "picture":
        return isinstance(value, bool)
    if key == "scale":
        return type(value) in (int, float)
    if key == "datatype":
        return value in DATATYPES
    return value in ("rgb", "bgr", "grey") if key == "colours" else isinstance(value, str) and bool(value)
