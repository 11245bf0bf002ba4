"""What `panglot new truss` writes."""

from __future__ import annotations

from panglot.dialects.base import Template

TEMPLATES = {
    "": Template(
        files={
            "config.yaml": "the model's name, and what it needs",
            "model/__init__.py": "makes a package of the folder",
            "model/model.py": "the script: class Model with load and predict",
            "data/weights.json": "what it has learned, in data_dir",
            "request.json": "a request to send",
        },
        call="curl -d @{folder}/request.json http://127.0.0.1:8080/v1/models/model:predict",
        title="A model of Truss, as Baseten runs it",
        sends="request.json",
        check='answer["label"] == "friendly"',
        answer='{"label": "friendly", "score": 0.9478}',
    )
}
