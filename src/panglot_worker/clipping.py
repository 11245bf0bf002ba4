"""How much of an exception is reported and stored: its message may be a whole request body."""

from __future__ import annotations

LONGEST_MESSAGE = 8192
LONGEST_TRACEBACK = 65536
"""Characters of an exception's message, and of its traceback."""
SEE_LOG = "; the server's log says why"
"""The end of a message for clients. The log leaves it out."""


def clipped(text: str, most: int) -> str:
    """The text; of a text longer than `most` characters, its beginning and its end."""
    if len(text) <= most:
        return text
    left_out = " ... (%d characters left out) ... " % (len(text) - most)
    return text[: most // 2] + left_out + text[len(text) - most // 2 :]
