"""What `panglot new mlflow` writes."""

from __future__ import annotations

from panglot.dialects.base import Template

TEMPLATES = {
    "": Template(
        files={
            "MLmodel": "says how mlflow loads the model, and what it takes and gives",
            "friendly.py": "the model: load_context, predict",
            "artifacts/weights.json": "what it has learned",
            "serving_input_example.json": "a request to send",
            "input_example.json": "its input alone",
            "requirements.txt": "what to install for it",
            "python_env.yaml": "the same, as mlflow writes it",
        },
        call=(
            "curl -H 'Content-Type: application/json' -d @{folder}/serving_input_example.json "
            "http://127.0.0.1:8080/invocations"
        ),
        prepare="pip install -r {folder}/requirements.txt",
        title="A model that MLflow has saved",
        sends="serving_input_example.json",
        check='answer["predictions"][0]["label"] == "friendly"',
        answer='{"predictions": [{"label": "friendly", "score": 0.9478},...',
    )
}
