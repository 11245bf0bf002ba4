"""Files that Replicate's client sends before a prediction. It gets an address for each, and sends that as the input.

The address is a data URL: so nothing is stored, and nobody else can fetch the file.
"""

from __future__ import annotations

import hashlib
from typing import Any, Dict, Tuple

from panglot_worker.bodies import codec
from panglot_worker.dialects.base import Request
from panglot_worker.dialects.cog import outputs
from panglot_worker.dialects.cog.prediction import now
from panglot_worker.errors import ClientError

FIELD, METADATA = "content", "metadata"
Sent = Tuple[codec.File, Dict[str, Any]]


def read(request: Request, limits: Any) -> Sent:
    """The file of a form, and what the client notes about it. Raises ClientError."""
    form = codec.decode(request.content_type, request.body, limits)
    file = form.get(FIELD) if isinstance(form, dict) else None
    if not isinstance(file, codec.File):
        raise ClientError("the body is a form with a file in the field %s" % FIELD)
    try:
        metadata = codec.decode(codec.JSON, str(form.get(METADATA) or "{}").encode(), limits)
    except ClientError:
        metadata = None
    if not isinstance(metadata, dict):
        raise ClientError("the field %s is a JSON object" % METADATA)
    return file, metadata


def shown(sent: Sent) -> Dict[str, Any]:
    """The file as Replicate's API shows it."""
    file, metadata = sent
    content = bytes(file)
    digest = hashlib.sha256(content).hexdigest()
    kind = file.type or outputs.kind_of(file.name)
    return {
        "id": digest[:24], "name": file.name, "content_type": kind, "size": len(content), "etag": digest,
        "checksums": {"sha256": digest}, "metadata": metadata, "created_at": now(), "expires_at": None,
        "urls": {"get": outputs.data_url(content, kind)},
    }  # fmt: skip
