"""The media type of content, judged by its first bytes, where nobody names it."""

from __future__ import annotations

PICTURES = (
    (b"\x89PNG\r\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"BM", "image/bmp"),
    (b"II*\0", "image/tiff"),
    (b"MM\0*", "image/tiff"),
)
JSON, OCTETS = "application/json", "application/octet-stream"
_WORDS = (b"true", b"false", b"null")


def media_type(content: bytes) -> str:
    """A type of picture, JSON for what begins like it, else that of any bytes."""
    for start, kind in PICTURES:
        if content.startswith(start):
            return kind
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    start = content[:64].lstrip(b" \t\r\n")[:1]
    if start and (start in b'{["-0123456789' or content.strip() in _WORDS):
        return JSON
    return OCTETS
