"""What clients are told: the form of ids, of parts, of refusals, and of failures of a handler."""

from __future__ import annotations

import json
import os
import traceback
from typing import Any, Optional, Tuple

from panglot_worker.dialects.base import Answer, Request
from panglot_worker.dialects.runpod import platform_package
from panglot_worker.errors import ClientError, message_of
from panglot_worker.line import wire

JSON = "application/json"
SYNC = b"/runsync"


class BadBody(ClientError):
    """A body that is JSON, and no request of this platform."""

    def __init__(self, kind: str, where: Tuple[Any, ...], message: str, value: Any) -> None:
        super().__init__(message, status=422)
        self.kind = kind
        self.where = where
        self.value = value


class YieldedError(Exception):
    """A generator has yielded a dict with an error, which ends its job as failed."""


def shown_id(request: Request) -> str:
    """The id of a job as clients know it; the front's half shows the same. Of a request that is no job, its own."""
    head = request.head
    if not head.job:
        return "test-" + head.request_id.decode("latin-1")
    return ("sync-" if head.route == SYNC else "") + head.job.decode("ascii") + "-u1"


def part(body: wire.Buffer) -> bytes:
    return b'{"output":' + bytes(body) + b"}"


def refusal(error: ClientError) -> Optional[Answer]:
    """The answer of the SDK's server, which FastAPI words, for a body that is no request; None for other refusals."""
    if isinstance(error, BadBody):
        detail = {"type": error.kind, "loc": list(error.where), "msg": str(error), "input": error.value}
    elif error.status == 400:
        detail = {
            "type": "json_invalid", "loc": ["body", 0], "msg": "JSON decode error", "input": {},
            "ctx": {"error": error.message},
        }  # fmt: skip
    else:
        return None
    text = json.dumps({"detail": [detail]}, ensure_ascii=False, separators=(",", ":"))
    return Answer(JSON, text.encode("utf-8", "replace"), 422)


def failure_text(error: BaseException, in_stream: bool, with_traceback: bool) -> str:
    """The text for an exception of a handler: JSON in a text, or for a generator a sentence.

    The platform's has the traceback. Here the log has it, and the answer with `--dev` alone: it shows the code.
    """
    lines = traceback.format_exception(type(error), error, error.__traceback__) if with_traceback else []
    text = "".join(lines)
    if in_stream:
        return "handler: %s" % message_of(error) + (" \ntraceback: %s" % text if text else "")
    return json.dumps(
        {
            "error_type": str(type(error)),
            "error_message": message_of(error),
            "error_traceback": text,
            "hostname": os.environ.get("RUNPOD_POD_HOSTNAME", "unknown"),
            "worker_id": os.environ.get("RUNPOD_POD_ID", "unknown"),
            "runpod_version": platform_package.version(),
        }
    )
