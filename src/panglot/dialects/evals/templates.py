"""What `panglot new evals` writes."""

from __future__ import annotations

from panglot.dialects.base import Template

TEMPLATES = {
    "": Template(
        files={
            "eval.py": "the script: create_net, net_inference",
            "weights.json": "what it has learned",
            "panglot.toml": "what the script is given at its start",
            "request.json": "a request to send",
            "requirements.txt": "what to install for it",
        },
        call="curl -H 'Content-Type: application/json' -d @{folder}/request.json http://127.0.0.1:8080/v1/eval",
        title="A script of Qiniu AVA evals",
        sends="request.json",
        check='answer["result"]["label"] == "friendly"',
        answer='{"code":0,"message":"","result":{"label":"friendly","score":0.9478}}',
    )
}
