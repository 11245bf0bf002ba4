"""What `panglot new triton` writes."""

from __future__ import annotations

from panglot.dialects.base import Template

TEMPLATES = {
    "": Template(
        files={
            "config.pbtxt": "what the model takes and gives, as Triton reads it",
            "1/model.py": "the model: initialize, execute, finalize",
            "request.json": "a request to send",
        },
        call="curl -d @{folder}/request.json http://127.0.0.1:8080/predict",
        title="A model of Triton's Python backend",
        sends="request.json",
        check='answer == {"OUTPUT": [[2.0, 4.0, 6.0, 8.0]]}',
        answer='{"OUTPUT":[[2.0,4.0,6.0,8.0]]}',
        installs="numpy",
    )
}
