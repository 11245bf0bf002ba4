"""What `panglot new azureml` writes."""

from __future__ import annotations

from panglot.dialects.base import Template

TEMPLATES = {
    "": Template(
        files={
            "score.py": "the script: init, run",
            "model/weights.json": "what it has learned, below AZUREML_MODEL_DIR",
            "deployment.yml": "names the script and the model, as for az ml online-deployment create",
            "request.json": "a request to send",
            "requirements.txt": "what to install for it",
        },
        call="curl -H 'Content-Type: application/json' -d @{folder}/request.json http://127.0.0.1:8080/score",
        title="A scoring script of Azure Machine Learning",
        sends="request.json",
        check='answer[0]["label"] == "friendly"',
        answer='[{"label": "friendly", "score": 0.9478}, {"label": "unfriendly", "score": 0.1192}]',
    )
}
