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
        },
        call="curl -H 'Content-Type: application/json' -d @{folder}/request.json http://127.0.0.1:8080/",
        title="A handler for Hugging Face Inference Endpoints",
        sends="request.json",
        check='answer[0]["label"] == "friendly"',
        answer='[{"label":"friendly","score":0.9478}]',
        card="---\npipeline_tag: text-classification\nwidget:\n  - text: What a lovely day, thank you!\n---\n\n",
    )
}
