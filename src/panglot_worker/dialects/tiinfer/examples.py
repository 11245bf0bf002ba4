"""The request a package itself shows in its `config.json`, which describes its API for the platform's console."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, Optional

LARGEST = 1 << 20


def published_example(folder: str) -> Optional[Dict[str, Any]]:
    """The first `request_example` of the file, for the documentation; None when there is none that is JSON."""
    path = os.path.join(folder, "config.json")
    try:
        if os.path.getsize(path) > LARGEST:
            return None
        with open(path, encoding="utf-8") as file:
            example = json.load(file)["apis"][0]["request_example"]
        value = json.loads(example) if isinstance(example, str) else example
    except (OSError, ValueError, LookupError, TypeError):
        return None
    return {"kind": "json", "value": value}
