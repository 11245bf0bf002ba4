"""What `panglot new hfendpoint` writes."""

from __future__ import annotations

from panglot.dialects.base import Template

TEMPLATES = {
    "": Template(
        files={
            "handler.py": "the script: EndpointHandler with __init__ and __call__",
            "weights.json": "what it has learned",
            "request.json": "a request to send",
            "requirements.txt": "what to install for it",
            "README.md": "the model's card, and how to serve and call it",
        },
        call="curl -H 'Content-Type: application/json' -d @{folder}/request.json http://127.0.0.1:8080/",
    )
}
