"""The request a package itself shows in its `config.json`, which describes its API for the platform's console."""

from __future__ import annotations

import os
from typing import Optional

from panglot_worker.files.package_files import json_in, json_value
from panglot_worker.line.description import ExampleRequest


def published_example(folder: str) -> Optional[ExampleRequest]:
    """The first `request_example` of the file, for the documentation; None when there is none that is JSON."""
    path = os.path.join(folder, "config.json")
    try:
        example = json_value(path)["apis"][0]["request_example"]
        value = json_in(example, path) if isinstance(example, str) else example
    except (OSError, ValueError, LookupError, TypeError):
        return None
    return {"kind": "json", "value": value}
