"""The request that a truss shows: of its metadata, of its file of examples, or of a request.json beside it."""

from __future__ import annotations

from typing import Any

from panglot.dialects.truss.config import Config
from panglot.errors import StartError
from panglot.packages import yaml_file
from panglot_worker.files.package_files import UnreadableFile, json_value

LARGEST = 65536


def example(config: Config) -> dict[str, Any] | None:
    """An example of a request, as a description has it; None where the package has none."""
    given = config.section("model_metadata").get("example_model_input")
    if given is not None:
        return {"kind": "json", "value": given}
    for name in ("request.json", "example.json"):
        try:
            return {"kind": "json", "value": json_value(config.folder / name, LARGEST)}
        except (OSError, UnreadableFile):
            continue
    return _of_file(config)


def _of_file(config: Config) -> dict[str, Any] | None:
    """The first input of examples.yaml: a list of `name` and `input` below a key, or inputs by name."""
    file = config.folder / config.text("examples_filename")
    if not file.is_file():
        return None
    try:
        table = yaml_file.read(file, LARGEST).table
    except StartError:
        # The file is for people, and the model does not need it.
        return None
    first = next(iter(table.values()), None)
    if isinstance(first, list):
        first = next(iter(first), None)
    if isinstance(first, dict) and "input" in first:
        return {"kind": "json", "value": first["input"]}
    return None
