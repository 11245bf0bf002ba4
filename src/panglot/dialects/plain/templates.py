"""What `panglot new plain` writes."""

from __future__ import annotations

from panglot.dialects.base import Template

TEMPLATES = {
    "": Template(
        files={
            "model.py": "the script: load, predict, example",
            "weights.json": "what it has learned",
            "request.json": "a request to send",
            "panglot.toml": "settings, all at their defaults",
            "requirements.txt": "what to install for it",
            "README.md": "how to serve and call it",
        },
        call="curl -H 'Content-Type: application/json' -d @{folder}/request.json http://127.0.0.1:8080/predict",
    )
}
