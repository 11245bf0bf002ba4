"""An example request: a file of the package, found by its name."""

from __future__ import annotations

import json
import os
from typing import List, Optional

from panglot_worker.dialects.base import Package
from panglot_worker.line.description import ExampleRequest

LARGEST = 65536
NAMES = ("request.json", "sample_request.json", "input.json", "sample-request.json")
FILES = {"request.csv": "text/csv", "request.npy": "application/x-npy", "request.libsvm": "text/libsvm"}


def example_of(package: Package) -> Optional[ExampleRequest]:
    """The request.json of the package or of its model's folder, or a table beside it; None where there is none."""
    folders = list(dict.fromkeys((package.folder, os.path.dirname(package.folder), package.options["model_dir"])))
    for folder in folders:
        for name in NAMES:
            path = os.path.join(folder, name)
            try:
                if os.path.getsize(path) <= LARGEST:
                    with open(path, encoding="utf-8") as file:
                        return {"kind": "json", "value": json.load(file)}
            except (OSError, ValueError):
                continue
    for name, kind in FILES.items():
        if os.path.isfile(os.path.join(package.folder, name)):
            return {"kind": "file", "type": kind, "name": name}
    return None


def request_types(package: Package) -> List[str]:
    """The content types that the container reads; a script's own `input_fn` may read others."""
    flavor = package.options["flavor"]
    if "input_fn" in package.options["functions"] or "transform_fn" in package.options["functions"]:
        return ["application/json", "text/csv", "application/x-npy", "application/octet-stream"]
    if flavor == "xgboost":
        return ["text/csv", "text/libsvm", "application/x-recordio-protobuf"]
    if flavor == "huggingface":
        return ["application/json", "image/png", "image/jpeg", "audio/wav"]
    return ["application/json", "text/csv", "application/x-npy"]
