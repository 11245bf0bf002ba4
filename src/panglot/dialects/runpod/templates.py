"""What `panglot new runpod` writes."""

from __future__ import annotations

from panglot.dialects.base import Template

TEMPLATES = {
    "": Template(
        files={
            "handler.py": "the script: a handler, and the call that starts the worker",
            "words.json": "what it has learned",
            "test_input.json": "a request to send",
        },
        call="curl -H 'Content-Type: application/json' -d @{folder}/test_input.json http://127.0.0.1:8080/runsync",
        title="A serverless worker of RunPod",
        sends="test_input.json",
        check='answer["output"]["label"] == "friendly"',
        answer='{"delayTime":..."status":"COMPLETED",..."output":{"label":"friendly",...}}',
    )
}
