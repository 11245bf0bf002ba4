"""Secrets in the bodies of forms: fields of urlencoded and multipart bodies, by their names and values."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import quote_plus, unquote_plus

URLENCODED = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"
BOUNDARY = re.compile(r'boundary=(?:"([^"]+)"|([^;,\s"]+))', re.IGNORECASE)
DISPOSITION = re.compile(rb'(?im)^content-disposition:[^\r\n]*?[;\s]name=(?:"((?:[^"\\]|\\.)*)"|([^;\s]+))')
EXTENDED_NAME = re.compile(rb"(?im)^content-disposition:[^\r\n]*?[;\s]name\*")
CleanField = Callable[[str, bytes], bytes | None]
"""Takes a field's name and value. Returns the value to write instead, or None if the value may stay."""


def clean_urlencoded(body: bytes, clean: CleanField) -> tuple[bytes, int]:
    """The body with cleaned values, and how many were cleaned."""
    count = 0
    parts = []
    for part in body.split(b"&"):
        name, equals, value = part.partition(b"=")
        cleaned = clean(unquote_plus(name.decode("latin-1")), _unquoted(value)) if equals else None
        if cleaned is not None:
            part = name + b"=" + quote_plus(cleaned).encode()
            count += 1
        parts.append(part)
    return b"&".join(parts), count


def _unquoted(value: bytes) -> bytes:
    return unquote_plus(value.decode("latin-1"), "latin-1").encode("latin-1", "replace")


def clean_multipart(body: bytes, content_type: str, clean: CleanField) -> tuple[bytes, int]:
    """The body with cleaned values, and how many were cleaned. Raises ValueError for a body that is no form."""
    boundary = BOUNDARY.search(content_type)
    if boundary is None:
        raise ValueError("it names no boundary")
    delimiter = b"\r\n--" + (boundary[1] or boundary[2]).encode("latin-1", "replace")
    # The body may begin with its first delimiter, without a line break before it.
    first, *parts = (b"\r\n" + body).split(delimiter)
    if not parts or not parts[-1].startswith(b"--"):
        raise ValueError("its parts do not come to an end")
    count = 0
    for index, part in enumerate(parts[:-1]):
        head, gap, value = part.partition(b"\r\n\r\n")
        if not gap:
            raise ValueError("a part has no head")
        cleaned = clean(_field_name(head), value)
        if cleaned is not None:
            parts[index] = head + gap + cleaned
            count += 1
    return delimiter.join((first, *parts)).removeprefix(b"\r\n"), count


def _field_name(head: bytes) -> str:
    """The name in the head of a part. Raises ValueError for a name that is written in a way readers differ about."""
    named = DISPOSITION.search(head)
    if named is None or EXTENDED_NAME.search(head):
        raise ValueError("a part has no plain name")
    return re.sub(rb"\\(.)", rb"\1", named[1] or named[2] or b"").decode("utf-8", "replace")
