"""Models of MLflow take JSON with the input at a key of its own, tables as CSV or Parquet, and chats as they are."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from panglot.dialects.mlflow.signature import CHAT, FORMATS, INPUTS, RECORDS
from panglot.inputs.base import JSON, About, Base64, ClientRequest, File, Given, Json, Whole

SAVED = "serving_input_example.json"
LONGEST = 300
"""Characters of an example that a command line shows itself. For a longer one, it names the file."""
TABLES = {".csv": "text/csv", ".parquet": "application/vnd.apache.parquet"}


def make_request(about: About, given: Given) -> ClientRequest:
    """A request unchanged; another value at the key that fits it; a table as the whole body, another file in base64."""
    if given.file is None:
        return ClientRequest(about.path, Json(_wrapped(given.value)))
    kind = next((kind for ending, kind in TABLES.items() if given.file.name.lower().endswith(ending)), "")
    if kind:
        return ClientRequest(about.path, Whole(given.file, kind))
    return ClientRequest(about.path, Json(_with_file(about, given.file)))


def example(about: About, folder: Path) -> ClientRequest | None:
    """The file with the request that was saved with the model, where its text is too long for a line."""
    shown = about.api.get("example") or {}
    is_long = len(json.dumps(shown.get("value"))) > LONGEST
    file = folder / SAVED
    return ClientRequest(about.path, Whole(Path(os.path.relpath(file)), JSON)) if is_long and file.is_file() else None


def _wrapped(value: Any) -> Any:
    """The request that has this input. A list of objects is a table."""
    if isinstance(value, dict) and any(key in value for key in (*FORMATS, *CHAT)):
        return value
    is_table = isinstance(value, list) and bool(value) and all(isinstance(row, dict) for row in value)
    return {RECORDS: value} if is_table else {INPUTS: value}


def _with_file(about: About, file: File) -> Any:
    """The file in the column that the user names, or in the only column of bytes; else as the whole input."""
    columns = [entry for entry in about.options.get("inputs", ()) if "name" in entry]
    binary = [entry["name"] for entry in columns if entry.get("type") == "binary"]
    name = about.field or (binary[0] if len(binary) == 1 else "")
    return {RECORDS: [{name: Base64(file)}]} if name else {INPUTS: [Base64(file)]}
