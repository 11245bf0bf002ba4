"""What clients send."""

from __future__ import annotations

import json
from typing import Any

from panglot_worker.errors import ClientError


def question_of(body: bytes) -> Any:
    try:
        return json.loads(body)["question"]
    except (ValueError, KeyError, TypeError):
        raise ClientError('send {"question": ...}') from None
