"""The request that a worker shows: the platform's files for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from panglot_worker.files.package_files import UnreadableFile, json_value

LARGEST = 65536


def example(*folders: Path) -> dict[str, Any] | None:
    """An example of a request, as a description has it: test_input.json, or the first test of the hub's file."""
    for folder in folders:
        given = _value(folder / "test_input.json")
        if isinstance(given, dict) and "input" in given:
            return {"kind": "json", "value": given}
    for folder in folders:
        hub = _value(folder / ".runpod" / "tests.json")
        tests = hub.get("tests") if isinstance(hub, dict) else None
        first = tests[0] if isinstance(tests, list) and tests else None
        if isinstance(first, dict) and "input" in first:
            return {"kind": "json", "value": {"input": first["input"]}}
    return None


def _value(file: Path) -> Any:
    try:
        return json_value(file, LARGEST)
    except (OSError, UnreadableFile):
        return None
