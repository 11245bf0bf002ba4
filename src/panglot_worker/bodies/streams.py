"""Answers in parts: server-sent events, or lines of JSON for clients that accept these."""

from __future__ import annotations

EVENTS = "text/event-stream"
LINES = "application/x-ndjson"
SIGNS_OF_LINES = (b"ndjson", b"jsonl", b"json-lines")
"""What the header Accept holds where a client wants lines of JSON."""


def chosen_type(accept: bytes) -> str:
    """The content type of an answer in parts, for a client with this header Accept."""
    return LINES if any(sign in accept for sign in SIGNS_OF_LINES) else EVENTS


def written(body: bytes, content_type: str, event: str = "") -> bytes:
    """One part of an answer, given as text in UTF-8: a line, or an event, which may have a name."""
    if content_type == LINES:
        return body + b"\n"
    named = b"event: " + event.encode() + b"\n" if event else b""
    return named + b"data: " + body.replace(b"\n", b"\ndata: ") + b"\n\n"
