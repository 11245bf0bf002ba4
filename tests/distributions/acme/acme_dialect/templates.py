"""What `panglot new acme` writes."""

from __future__ import annotations

from panglot.dialects.base import Template

TEMPLATES = {
    "": Template(
        files={"acme_service.py": "the script", "request.json": "a question to send"},
        call="curl -d @{folder}/request.json http://127.0.0.1:8080/acme/ask",
    )
}
