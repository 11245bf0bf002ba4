"""SageMaker scripts take any body with its content type: JSON as it is, a file as the whole body."""

from __future__ import annotations

import os
from pathlib import Path

from panglot.dialects.sagemaker.entry import CODE
from panglot.inputs.base import JSON, About, ClientRequest, Given, Json, Whole

EXAMPLE = "request.json"
TABLES = {
    ".csv": "text/csv", ".npy": "application/x-npy", ".npz": "application/x-npz", ".libsvm": "text/libsvm",
    ".jsonl": "application/jsonlines",
}  # fmt: skip


def make_request(about: About, given: Given) -> ClientRequest:
    """A JSON value unchanged; a file as the whole body, with the content type that the platform's clients send."""
    if given.file is None:
        return ClientRequest(about.path, Json(given.value))
    kind = next((kind for ending, kind in TABLES.items() if given.file.name.lower().endswith(ending)), "")
    return ClientRequest(about.path, Whole(given.file, kind))


def example(about: About, folder: Path) -> ClientRequest | None:
    """The request.json of the package, which lies beside the script or in the model's folder."""
    for where in dict.fromkeys((folder, folder.parent if folder.name == CODE else folder)):
        if (where / EXAMPLE).is_file():
            return ClientRequest(about.path, Whole(Path(os.path.relpath(where / EXAMPLE)), JSON))
    return None
