"""The job of a request, as the platform gives it to handlers."""

from __future__ import annotations

from typing import Any, Dict

from panglot_worker.bodies import codec
from panglot_worker.dialects.base import Request
from panglot_worker.dialects.runpod.answers import BadBody, shown_id

REALTIME = b"/realtime"


def job_of(request: Request, limits: Any) -> Dict[str, Any]:
    """A dict with `id`, `input`, `webhook`, and what else the client has sent. Raises ClientError.

    The platform's servers take JSON whatever the content type is called.
    """
    body = codec.decode(codec.JSON, request.body, limits)
    if not isinstance(body, dict):
        message = "Input should be a dictionary or an instance of DefaultRequest"
        raise BadBody("dataclass_type", ("body",), message, body)
    if "input" not in body:
        raise BadBody("missing", ("body", "input"), "Field required", body)
    # Clients may not choose the id of a job; the real-time path, which stores none, takes theirs.
    takes_theirs = request.head.route == REALTIME and isinstance(body.get("id"), str)
    own = {"id": body["id"] if takes_theirs else shown_id(request), "input": body["input"]}
    return {**own, "webhook": None, **body, **own}
