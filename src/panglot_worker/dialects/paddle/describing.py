"""The API of a script, for the documents and the line of curl."""

from __future__ import annotations

import mimetypes
import os
from typing import Any, Dict, List, Optional

from panglot_worker.bodies.schema import documentation, of_object
from panglot_worker.dialects.base import Package
from panglot_worker.dialects.paddle.requests import Wanted
from panglot_worker.line.description import Description, ExampleRequest


def describe(
    package: Package, kind: Any, wanted: List[Wanted], names: List[str], samples: Optional[Dict[str, str]]
) -> Description:
    """What the worker tells the front about this script's requests and answers, for documents and examples."""
    return {
        "entry": package.options.get("entry", "InferenceEngine"),
        "stages": ["preprocess", "postprocess"] if package.options.get("shape") == "engine" else [],
        "summary": documentation(kind) or "",
        "request_schema": _request(wanted),
        "response_schema": {"type": "object", "properties": {name: {} for name in names}} if names else {},
        "example": _example(package, wanted, samples),
        "streams": False,
    }


def _request(wanted: List[Wanted]) -> Dict[str, Any]:
    """A file as the body, a form, or JSON."""
    if not wanted or all(field.kind == "text" for field in wanted):
        return of_object({field.name: {"type": "string"} for field in wanted})
    options = [
        of_object(
            {field.name: {"type": "string", **({} if field.kind == "text" else {"format": form})} for field in wanted}
        )
        for form in ("binary", "byte")
    ]
    whole = [{"type": "string", "format": "binary"}] if len(wanted) == 1 else []
    return {"anyOf": [*whole, *options]}


def _example(package: Package, wanted: List[Wanted], samples: Optional[Dict[str, str]]) -> Optional[ExampleRequest]:
    given = samples or {}
    if not wanted:
        return None
    if all(field.kind == "text" for field in wanted):
        return {"kind": "json", "value": {field.name: given.get(field.name, "...") for field in wanted}}
    types = {field.name: _type(given.get(field.name, ""), field) for field in wanted if field.kind != "text"}
    files = {name: os.path.relpath(given[name], package.folder) if name in given else "" for name in types}
    if len(wanted) == 1:
        name = wanted[0].name
        return {"kind": "file", "type": types[name], "name": files[name]}
    fields = [field.name for field in wanted if field.kind == "text"]
    return {"kind": "form", "files": types, "names": files, "fields": fields}


def _type(path: str, field: Wanted) -> str:
    return mimetypes.guess_type(path)[0] or ("image/jpeg" if field.picture else "application/octet-stream")
