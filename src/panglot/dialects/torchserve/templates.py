"""What `panglot new torchserve` writes."""

from __future__ import annotations

from panglot.dialects.base import Template

TEMPLATES = {
    "": Template(
        files={
            "handler.py": "the handler: a class with initialize and handle",
            "words.json": "what it has learned",
            "model-config.yaml": "how many requests come in one call",
            "request.json": "a request to send",
            "README.md": "how to serve and call it",
        },
        call="curl -H 'Content-Type: application/json' -d @{folder}/request.json http://127.0.0.1:8080/predictions/sentiment",
    )
}
