"""The signature and the input example of a saved model, as a schema and a request."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from panglot.dialects.mlflow.folder import ModelFolder
from panglot_worker.files.package_files import UnreadableFile, json_value

Schema = dict[str, Any]

LARGEST_EXAMPLE = 1 << 20
RECORDS, SPLIT, INSTANCES, INPUTS = FORMATS = ("dataframe_records", "dataframe_split", "instances", "inputs")
CHAT = ("messages", "prompt", "input")
"""Keys of a body that is the input as a whole. Then the answer is the output as a whole."""
TYPES: dict[str, Schema] = {
    "boolean": {"type": "boolean"},
    "integer": {"type": "integer"},
    "long": {"type": "integer"},
    "float": {"type": "number"},
    "double": {"type": "number"},
    "string": {"type": "string"},
    "binary": {"type": "string", "contentEncoding": "base64"},
    "datetime": {"type": "string", "format": "date-time"},
}
SAMPLES: dict[str, Any] = {
    "boolean": True, "integer": 1, "long": 1, "float": 1.0, "double": 1.0, "string": "text", "binary": "aGk=",
    "datetime": "2024-01-01T00:00:00",
}  # fmt: skip


@dataclass(frozen=True)
class Signature:
    """The inputs and outputs of a model, columns or tensors, and its parameters, each as in the signature's JSON."""

    inputs: list[dict[str, Any]] = field(default_factory=list)
    outputs: list[dict[str, Any]] = field(default_factory=list)
    params: list[dict[str, Any]] = field(default_factory=list)
    from_hints: bool = False
    """Whether it was made from type hints: then the model gets lists unchanged, and no table."""

    @property
    def is_named(self) -> bool:
        return bool(self.inputs) and all(isinstance(entry.get("name"), str) for entry in self.inputs)

    @property
    def is_tensors(self) -> bool:
        return bool(self.inputs) and all("tensor-spec" in entry for entry in self.inputs)


def read(model: ModelFolder) -> Signature:
    """The signature of a model. Raises StartError where it cannot be read."""
    section = model.section("signature")
    return Signature(
        _entries(model, section, "inputs"),
        _entries(model, section, "outputs"),
        _entries(model, section, "params"),
        bool(model.file.table.get("is_signature_from_type_hint")),
    )


def _entries(model: ModelFolder, section: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    text = section.get(name)
    if text is None:
        return []
    try:
        entries = json.loads(text) if isinstance(text, str) else text
    except (ValueError, RecursionError):
        entries = None
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        problem = f"signature.{name} must be the text of a JSON list of objects"
        raise model.file.error(problem, "signature", name, fix="save the model again: mlflow writes it")
    return entries


# The description


def api(model: ModelFolder, signature: Signature) -> dict[str, Any]:
    """The description of the API, as far as it is known without loading the model."""
    saved = saved_example(model)
    is_chat = _is_chat(signature, saved)
    example = saved if saved is not None else made_example(signature)
    if isinstance(example, dict) and signature.is_named and not signature.is_tensors:
        example = _as_records(example)
    key = next((key for key in FORMATS if isinstance(example, dict) and key in example), "")
    answered = _outputs(signature)
    return {
        "request_types": ["application/json", "text/csv", "application/vnd.apache.parquet"],
        "request_schema": _chat_schema(signature) if is_chat else _request(signature, key),
        "response_schema": answered if is_chat else {"type": "object", "properties": {"predictions": answered}},
        "example": {"kind": "json", "value": example} if example is not None else None,
    }


def _is_chat(signature: Signature, saved: Any) -> bool:
    if isinstance(saved, dict):
        return not any(key in saved for key in FORMATS) and any(key in saved for key in CHAT)
    return any(entry.get("name") == CHAT[0] for entry in signature.inputs)


def _request(signature: Signature, key: str) -> Schema:
    """The schema of a body with its input at one key. Without a signature, every key is allowed."""
    if not signature.inputs:
        return {"type": "object", "properties": {**{name: {} for name in FORMATS}, **_params(signature)}}
    if signature.from_hints:
        key, data = INPUTS, {"type": "array", "items": _typed(signature.inputs[0])}
    elif signature.is_tensors:
        key, data = INPUTS, _tensors(signature.inputs)
    elif signature.is_named and key in ("", RECORDS):
        key, data = RECORDS, {"type": "array", "items": _object(signature.inputs)}
    else:
        key, data = key or INPUTS, {}
    return {"type": "object", "properties": {key: data, **_params(signature)}, "required": [key]}


def _chat_schema(signature: Signature) -> Schema:
    schema = _object(signature.inputs)
    given = {str(entry.get("name")): _parameter(entry) for entry in signature.params}
    return {**schema, "properties": {**schema["properties"], **given}}


def _object(entries: list[dict[str, Any]]) -> Schema:
    schema: Schema = {
        "type": "object",
        "properties": {str(entry.get("name")): _typed(entry) for entry in entries},
    }
    required = [str(entry.get("name")) for entry in entries if entry.get("required", True)]
    return {**schema, "required": required} if required else schema


def _tensors(entries: list[dict[str, Any]]) -> Schema:
    if len(entries) == 1 and "name" not in entries[0]:
        return _typed(entries[0])
    return _object(entries)


def _typed(entry: Mapping[str, Any]) -> Schema:
    """The schema of a column or a tensor, or of their elements."""
    kind = entry.get("type")
    if kind == "tensor":
        return _tensor(entry.get("tensor-spec") or {})
    if kind == "array":
        return {"type": "array", "items": _typed(entry.get("items") or {})}
    if kind == "map":
        return {"type": "object", "additionalProperties": _typed(entry.get("values") or {})}
    if kind == "object":
        properties = entry.get("properties") or {}
        return _object([{"name": name, **about} for name, about in properties.items() if isinstance(about, dict)])
    return dict(TYPES.get(str(kind), {}))


def _tensor(spec: Mapping[str, Any]) -> Schema:
    dtype = str(spec.get("dtype", ""))
    schema: Schema = {}
    if dtype.startswith(("int", "uint")):
        schema = {"type": "integer"}
    elif dtype.startswith("float"):
        schema = {"type": "number"}
    elif dtype == "bool":
        schema = {"type": "boolean"}
    elif dtype.startswith(("str", "object")):
        schema = {"type": "string"}
    for size in reversed(spec.get("shape") or ()):
        schema = {"type": "array", "items": schema}
        if isinstance(size, int) and size >= 0:
            schema |= {"minItems": size, "maxItems": size}
    return schema


def _params(signature: Signature) -> Schema:
    if not signature.params:
        return {}
    given = {str(entry.get("name")): _parameter(entry) for entry in signature.params}
    return {"params": {"type": "object", "properties": given}}


def _parameter(entry: Mapping[str, Any]) -> Schema:
    schema = _typed(entry)
    if entry.get("shape") is not None:
        schema = {"type": "array", "items": schema}
    return {**schema, "default": entry["default"]} if entry.get("default") is not None else schema


def _outputs(signature: Signature) -> Schema:
    entries = signature.outputs
    if not entries:
        return {}
    if all("tensor-spec" in entry for entry in entries):
        return _tensors(entries)
    if all("name" in entry for entry in entries):
        return {"type": "array", "items": _object(entries)}
    return {"type": "array", "items": _typed(entries[0])} if len(entries) == 1 else {"type": "array"}


# The example


def saved_example(model: ModelFolder) -> Any:
    """The request that was saved with the model, or a request made of the saved input; None without either."""
    info = model.section("saved_input_example_info")
    request = _file(model, info.get("serving_input_path") or "serving_input_example.json")
    if isinstance(request, dict):
        return request
    value = _file(model, info.get("artifact_path"))
    if value is None:
        return None
    if isinstance(value, dict):
        if any(key in value for key in (*FORMATS, *CHAT)):
            return value
        if "data" in value and set(value) <= {"columns", "index", "data"}:
            return {SPLIT: value}
    return {INPUTS: value}


def _file(model: ModelFolder, name: Any) -> Any:
    if not isinstance(name, str) or not name:
        return None
    try:
        return json_value(model.folder / name, LARGEST_EXAMPLE)
    except (OSError, UnreadableFile):
        return None


def made_example(signature: Signature) -> Any:
    """A request that the signature allows; None where the signature says too little."""
    entries = signature.inputs
    if not entries:
        return None
    if signature.from_hints:
        return {INPUTS: [sample(entries[0])]}
    if _is_chat(signature, None):
        return {str(entry["name"]): sample(entry) for entry in entries if entry.get("required", True)}
    if signature.is_tensors:
        if len(entries) == 1 and "name" not in entries[0]:
            return {INPUTS: sample(entries[0])}
        return {INPUTS: {str(entry.get("name")): sample(entry) for entry in entries}}
    if signature.is_named:
        return {RECORDS: [{str(entry["name"]): sample(entry) for entry in entries}]}
    return {SPLIT: {"data": [[sample(entry) for entry in entries]]}}


def sample(entry: Mapping[str, Any]) -> Any:
    """A value of a type of the signature."""
    kind = entry.get("type")
    if kind == "tensor":
        spec = entry.get("tensor-spec") or {}
        value: Any = {"i": 1, "u": 1, "b": True, "s": "text", "o": "text"}.get(str(spec.get("dtype"))[:1], 1.0)
        for size in reversed(spec.get("shape") or ()):
            value = [value] * (min(size, 1024) if isinstance(size, int) and size >= 0 else 1)
        return value
    if kind == "array":
        return [sample(entry.get("items") or {})]
    if kind == "map":
        return {"key": sample(entry.get("values") or {})}
    if kind == "object":
        properties = entry.get("properties") or {}
        return {
            name: sample(about)
            for name, about in properties.items()
            if isinstance(about, dict) and about.get("required", True)
        }
    return SAMPLES.get(str(kind))


def _as_records(example: dict[str, Any]) -> dict[str, Any]:
    """A table as a list of rows with names. It is easier to read and to change, and means the same to the model."""
    table = example.get(SPLIT)
    columns = table.get("columns") if isinstance(table, dict) else None
    rows = table.get("data") if isinstance(table, dict) else None
    if not isinstance(columns, list) or not isinstance(rows, list):
        return example
    if not all(isinstance(name, str) for name in columns) or len(set(columns)) != len(columns):
        return example
    if not all(isinstance(row, list) and len(row) == len(columns) for row in rows):
        return example
    records = [dict(zip(columns, row, strict=True)) for row in rows]
    return {RECORDS: records, **{key: value for key, value in example.items() if key != SPLIT}}
