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
        },
        call="curl -H 'Content-Type: application/json' -d @{folder}/request.json http://127.0.0.1:8080/predictions/{name}",
        title="A handler of TorchServe",
        sends="request.json",
        check='answer["label"] == "friendly"',
        answer='{"label": "friendly", "score": 3}',
    )
}
