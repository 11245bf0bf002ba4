"""What `panglot new cog` writes."""

from __future__ import annotations

from panglot.dialects.base import Template

TEMPLATES = {
    "": Template(
        files={
            "cog.yaml": "which class predicts, and what the image has",
            "predict.py": "the script: a class with setup and predict",
            "words.json": "what it has learned",
            "request.json": "a request to send",
        },
        call="curl -H 'Content-Type: application/json' -d @{folder}/request.json http://127.0.0.1:8080/predictions",
        title="A predictor of Cog, as Replicate runs it",
        sends="request.json",
        check='answer["output"]["label"] == "friendly"',
        answer='{"input":..."output":{"label":"friendly",...}...}',
    )
}
