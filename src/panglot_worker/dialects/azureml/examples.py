"""A request that is known to work: of the schema, of a file that holds one, or of the package's own Swagger."""

from __future__ import annotations

import os
from typing import Any, Dict, Optional

from panglot_worker.files.package_files import UnreadableFile, json_value
from panglot_worker.line.description import ExampleRequest

SAMPLES = ("sample-request.json", "sample_request.json", "sample_input.json", "request.json", "sample.json")
SWAGGER = ("swagger.json", "swagger2.json", "swagger3.json")


def example_of(folder: str, schema: Optional[Dict[str, Any]]) -> Optional[ExampleRequest]:
    """An example of the request, as JSON; None where nothing shows one."""
    if schema is not None and schema.get("example"):
        return {"kind": "json", "value": schema["example"]}
    for name in SAMPLES:
        value = _json(os.path.join(folder, name))
        if value is not None:
            return {"kind": "json", "value": value}
    for name in SWAGGER:
        document = _json(os.path.join(folder, name))
        if isinstance(document, dict):
            schemas = document.get("definitions") or (document.get("components") or {}).get("schemas") or {}
            shown = (schemas.get("ServiceInput") or {}).get("example")
            if shown:
                return {"kind": "json", "value": shown}
    return None


def _json(path: str) -> Any:
    try:
        return json_value(path)
    except (OSError, UnreadableFile):
        return None
