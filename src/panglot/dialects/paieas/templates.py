"""What `panglot new paieas` writes."""

from __future__ import annotations

from panglot.dialects.base import Template

TEMPLATES = {
    "": Template(
        files={
            "app.py": "the script: a class over allspark.BaseProcessor",
            "app.json": "the description of the service",
            "model/weights.json": "what it has learned",
            "request.txt": "a request to send",
            "requirements.txt": "what to install for it",
            "README.md": "how to serve and call it",
        },
        call="curl -d @{folder}/request.txt http://127.0.0.1:8080/api/predict/friendly",
    )
}
