"""What `panglot new tiinfer` writes."""

from __future__ import annotations

from panglot.dialects.base import Template

TEMPLATES = {
    "": Template(
        files={
            "model_service.py": "the script: load, preprocess, predict, postprocess",
            "weights.json": "what it has learned",
            "request.json": "a request to send",
            "config.json": "the API, as the platform's console shows it",
            "requirements.txt": "what to install for it",
        },
        call="curl -d @{folder}/request.json http://127.0.0.1:8080/inference",
        title="A model service of Tencent tiinfer",
        sends="request.json",
        check='answer["result"]["label"] == "friendly"',
        answer='{"result":{"label":"friendly","score":0.9478}}',
    )
}
