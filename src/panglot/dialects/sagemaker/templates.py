"""What `panglot new sagemaker` writes."""

from __future__ import annotations

from panglot.dialects.base import Template

TEMPLATES = {
    "": Template(
        files={
            "code/inference.py": "the script: model_fn, input_fn, predict_fn, output_fn",
            "code/requirements.txt": "what to install for it",
            "weights.json": "what it has learned, in model_dir",
            "request.json": "a request to send",
        },
        call="curl -H 'Content-Type: application/json' -d @{folder}/request.json http://127.0.0.1:8080/invocations",
        title="A script for an endpoint of SageMaker",
        sends="request.json",
        check='answer[0]["label"] == "friendly"',
        answer='[{"label": "friendly", "score": 0.9478}, {"label": "unfriendly", "score": 0.1192}]',
    )
}
