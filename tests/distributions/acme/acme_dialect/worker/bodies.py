"""What clients send."""

from __future__ import annotations

from typing import Any

from panglot_worker.bodies import jsontext
from panglot_worker.errors import ClientError


def question_of(body: bytes) -> Any:
    """The question of a request. Raises ClientError where there is none."""
    sent = jsontext.loads(body)
    if not isinstance(sent, dict) or "question" not in sent:
        raise ClientError('send {"question": ...}')
    return sent["question"]
