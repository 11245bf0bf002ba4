"""The head of an answer as bytes: status, content type, the header lines of the script, and the times."""

from __future__ import annotations

import re
from collections.abc import Sequence
from http import HTTPStatus

from panglot.engine.call import Step

KNOWN_BEGINNINGS = 256
"""How many beginnings of answers are remembered."""
LONGEST_LINE = 8192
"""Bytes of the longest header line, or content type, that a script may give."""
STATUS_LINES = {
    status: b"HTTP/1.1 %d %s\r\n" % (status, HTTPStatus(status).phrase.encode() if status in set(HTTPStatus) else b"")
    for status in range(100, 600)
}
MILLISECONDS = tuple(f"{us / 1000:.3f}" for us in range(4096))
"""Short times by their microseconds: to write a float takes several times as long as to look it up."""
LOOKED_UP = len(MILLISECONDS)
TIMING_ALL = (
    b"server-timing: queue;dur=%.3f, decode;dur=%.3f, preprocess;dur=%.3f, inference;dur=%.3f, "
    b"postprocess;dur=%.3f, encode;dur=%.3f, total;dur=%.3f\r\n"
)
VALUE = re.compile(rb"[\t -~\x80-\xff]*")
LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[\t -~\x80-\xff]*")
OURS = frozenset((
    b"connection", b"content-length", b"content-type", b"date", b"keep-alive", b"proxy-connection", b"server-timing",
    b"te", b"trailer", b"transfer-encoding", b"upgrade", b"x-request-id",
))  # fmt: skip
"""Names of headers that a script cannot give: they frame the answer, or are in it already."""
LINES = re.compile(
    rb"(?:(?!(?i:%s):)[!#$%%&'*+.^_`|~0-9A-Za-z-]+:[\t -~\x80-\xff]*(?:\0(?!$)|$))+" % b"|".join(sorted(OURS))
)
"""Header lines that a script may give, with NUL between them: one match accepts nearly every answer."""


class BadHead(Exception):
    """The head of a worker's answer cannot be sent: it would end too early, or contradict the answer."""


def beginning(known: dict[tuple[int, bytes], bytes], status: int, head: bytes) -> bytes:
    """Status line, content type and the script's own header lines. The part before these lines is kept in `known`.

    Raises BadHead for an interim status, a wrong content type, and a line that is no header or the server's to set.
    """
    begun = known.get((status, head))
    if begun is not None:
        return begun
    content_type, has_lines, lines = head.partition(b"\0")
    key = (status, content_type)
    begun = known.get(key)
    if begun is None:
        if 100 <= status < 200:
            raise BadHead(f"status {status} ends no request")
        begun = STATUS_LINES.get(status, STATUS_LINES[500])
        if content_type:
            if not VALUE.fullmatch(content_type) or len(content_type) > LONGEST_LINE:
                raise BadHead(f"its content type cannot be sent: {_shown(content_type)}")
            begun += b"content-type: " + content_type + b"\r\n"
        # A browser that guesses HTML would run a script's result as a page of this server.
        if content_type != b"application/json":
            begun += b"x-content-type-options: nosniff\r\n"
        # Content types come from scripts: one that makes up a new one each time must not fill the memory.
        if len(known) < KNOWN_BEGINNINGS:
            known[key] = begun
    return begun + _checked_lines(lines) if has_lines else begun


def _checked_lines(lines: bytes) -> bytes:
    """Header lines with NUL between them, as they are sent."""
    if len(lines) > LONGEST_LINE or LINES.fullmatch(lines) is None:
        # One of them is wrong, or they are long only together: each decides for itself.
        for line in lines.split(b"\0"):
            _checked(line)
    return lines.replace(b"\0", b"\r\n") + b"\r\n"


def _checked(line: bytes) -> bytes:
    header = LINE.fullmatch(line)
    if header is None or len(line) > LONGEST_LINE:
        raise BadHead(f"a line of its headers is none: {_shown(line)}")
    if header[1].lower() in OURS:
        raise BadHead(f"a header of it is the server's own to set: {_shown(line)}")
    return line


def _shown(text: bytes) -> str:
    return repr(text[:80].decode("latin-1"))


def header_text(text: str) -> bytes:
    """The text, with an escape or `?` for everything that could break out of its header line."""
    raw = text.encode("ascii", "backslashreplace")
    return bytes(c if 32 <= c < 127 else 63 for c in raw[:4096])


def timing(queued_us: int, times: tuple[int, int, int, int, int], total_us: int, trail: Sequence[Step] = ()) -> bytes:
    """The Server-Timing line; after a pipeline it also tells what each took."""
    if trail:
        pools = b"".join(
            b", %s.queue;dur=%.3f, %s.run;dur=%.3f"
            % (name := step.pool.encode(), step.queued_us * 1e-3, name, step.run_us * 1e-3)
            for step in trail
        )
        return timing(queued_us, times, total_us)[:-2] + pools + b"\r\n"
    decode, preprocess, inference, postprocess, encode = times
    if preprocess or postprocess:
        return TIMING_ALL % (
            queued_us * 1e-3, decode * 1e-3, preprocess * 1e-3, inference * 1e-3, postprocess * 1e-3, encode * 1e-3,
            total_us * 1e-3,
        )  # fmt: skip
    queued = MILLISECONDS[queued_us] if queued_us < LOOKED_UP else f"{queued_us / 1000:.3f}"
    total = MILLISECONDS[total_us] if total_us < LOOKED_UP else f"{total_us / 1000:.3f}"
    stages = (
        f"decode;dur={MILLISECONDS[decode]}, inference;dur={MILLISECONDS[inference]}, encode;dur={MILLISECONDS[encode]}"
        if decode < LOOKED_UP and inference < LOOKED_UP and encode < LOOKED_UP
        else f"decode;dur={decode / 1000:.3f}, inference;dur={inference / 1000:.3f}, encode;dur={encode / 1000:.3f}"
    )
    return f"server-timing: queue;dur={queued}, {stages}, total;dur={total}\r\n".encode()
