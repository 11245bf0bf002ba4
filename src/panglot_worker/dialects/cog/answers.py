"""The bodies of requests, and the platform's answers to bodies that it does not take."""

from __future__ import annotations

import json
from typing import Any, Dict, Optional

from panglot_worker.bodies import codec
from panglot_worker.dialects.base import Answer, Request
from panglot_worker.dialects.cog.signature import BadInput
from panglot_worker.errors import ClientError

OTHER_ID = "prediction ID must match the ID supplied in the URL"


def body_of(request: Request, limits: Any) -> Dict[str, Any]:
    """The body of a request, with `input`; without a body all inputs have their defaults. Raises ClientError."""
    raw = bytes(request.body)
    try:
        body = codec.decode(codec.JSON, raw, limits) if raw.strip() else {}
    except ClientError as error:
        if error.status != 400:
            raise
        raise BadInput([{"loc": ["body", 0], "msg": error.message, "type": "value_error.jsondecode"}]) from None
    if body is None:
        body = {}
    if not isinstance(body, dict):
        raise BadInput([{"loc": ["body"], "msg": "value is not a valid dict", "type": "type_error.dict"}])
    if not isinstance(body.get("input") or {}, dict):
        raise BadInput([{"loc": ["body", "input"], "msg": "value is not a valid dict", "type": "type_error.dict"}])
    named = request.head.path_values.get("prediction_id")
    if named and body.get("id") not in (None, named):
        raise BadInput([{"loc": ["body", "id"], "msg": OTHER_ID, "type": "value_error"}])
    return {"input": None, **body, **({"id": named} if named else {})}


def refusal(error: ClientError) -> Optional[Answer]:
    """422 with the detail; 406 with the platform's sentence; None for what the front words."""
    content: Dict[str, Any]
    if isinstance(error, BadInput):
        content = {"detail": error.problems}
    elif error.status == 406:
        content = {"error": error.message}
    else:
        return None
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), default=str)
    return Answer(codec.JSON, text.encode("utf-8", "replace"), error.status)
