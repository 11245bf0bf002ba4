"""What `panglot new triton` writes."""

from __future__ import annotations

from panglot.dialects.base import Template

TEMPLATES = {
    "": Template(
        files={
            "config.pbtxt": "what the model takes and gives, as Triton reads it",
            "1/model.py": "the model: initialize, execute, finalize",
            "request.json": "a request to send",
            "README.md": "how to serve and call it",
        },
        call="curl -d @{folder}/request.json http://127.0.0.1:8080/predict",
    )
}
