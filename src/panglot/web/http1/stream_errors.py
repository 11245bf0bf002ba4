"""The last part of a stream that broke off, for clients that ask for one with `Prefer: error-in-stream`.

A browser drops what came shortly before a connection breaks, so a page could not show the last parts of such a stream.
"""

from __future__ import annotations

from panglot.engine.call import Fault
from panglot.web.contract import neutral_error

PREFERENCE = b"error-in-stream"
APPLIED = b"preference-applied: error-in-stream\r\n"
FORMS = {
    b"text/event-stream": b"\n\nevent: error\ndata: %b\n\n",
    b"application/x-ndjson": b"\n%b\n",
    b"application/jsonl": b"\n%b\n",
    b"application/json-lines": b"\n%b\n",
    b"application/x-jsonlines": b"\n%b\n",
}
"""Each begins with empty lines, because the script may have stopped in the middle of a line."""


def is_wanted(prefer: bytes) -> bool:
    """Whether the header Prefer asks for it."""
    return PREFERENCE in prefer and PREFERENCE in [word.strip().lower() for word in prefer.split(b",")]


def form_of(head: bytes) -> bytes:
    """The form of the part in a stream whose first part has this head; empty: a stream of this kind has none."""
    content_type = head.partition(b"\0")[0].partition(b";")[0]
    return FORMS.get(content_type.strip().lower(), b"")


def error_part(form: bytes, fault: Fault, request_id: bytes) -> bytes:
    return form % neutral_error(fault, request_id.decode("latin-1")).body
