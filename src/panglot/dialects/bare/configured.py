"""A TorchScript file in a repository of Triton: its config.pbtxt lists the inputs by position."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

from panglot.packages.config_pbtxt import triton_config
from panglot.packages.model_folder import CONFIG

INDEX = re.compile(r".*__(\d+)")
"""Triton's names for tensors without names: INPUT__0, OUTPUT__1."""


class ConfiguredTensors(NamedTuple):
    """Inputs in the order in which the module takes them, and the name of each output, with its index."""

    inputs: list[dict[str, Any]]
    outputs: list[tuple[int, str]]


def read(model: Path) -> ConfiguredTensors:
    """The tensors in the configuration of a model; none where there is no configuration. Raises StartError."""
    folders = (model.parent, model.parent.parent) if model.parent.name.isdigit() else (model.parent,)
    path = next((folder / CONFIG for folder in folders if (folder / CONFIG).is_file()), None)
    if path is None:
        return ConfiguredTensors([], [])
    declared = triton_config.tensors(triton_config.read(path), path)
    inputs = sorted(zip(_indexes(declared["inputs"]), declared["inputs"], strict=True), key=lambda pair: pair[0])
    names = [tensor["name"] for tensor in declared["outputs"]]
    outputs = list(zip(_indexes(declared["outputs"]), names, strict=True))
    return ConfiguredTensors([tensor for _, tensor in inputs], outputs)


def _indexes(tensors: list[dict[str, Any]]) -> list[int]:
    """The position of each tensor: by its name where all names have one, else as they are listed."""
    matches = [INDEX.fullmatch(tensor["name"]) for tensor in tensors]
    return [int(match[1]) if match is not None and all(matches) else at for at, match in enumerate(matches)]
