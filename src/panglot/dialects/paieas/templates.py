"""What `panglot new paieas` writes."""

from __future__ import annotations

from panglot.dialects.base import Template

TEMPLATES = {
    "": Template(
        files={
            "app.py": "the script: a subclass of allspark.BaseProcessor",
            "app.json": "the description of the service",
            "model/weights.json": "what it has learned",
            "examples/lovely_day.txt": "a request to send",
            "requirements.txt": "what to install for it",
        },
        call="curl -d @{folder}/examples/lovely_day.txt http://127.0.0.1:8080/api/predict/friendly",
        title="A processor of Alibaba PAI-EAS",
        sends="examples/lovely_day.txt",
        check='answer["label"] == "friendly"',
        answer='{"label": "friendly", "score": 0.9478}',
    )
}
