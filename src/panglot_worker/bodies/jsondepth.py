"""How deep a JSON text is nested, found at C speed; nothing is parsed."""

from __future__ import annotations

import re
from itertools import accumulate, islice

SHALLOW = 4
_WINDOW = 1 << 16
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
_BRACKET = re.compile(rb"[\[\]{}]")
_RUN = re.compile(b"\x01+|\xff+")
_WORTH = 8
"""A pass over the brackets is worth its time when it removes at least one in this many."""


def too_deep(text: bytes, limit: int) -> int:
    """The offset of the first bracket that opens level `limit + 1` of a JSON text; -1 when there is none."""
    if (limit >= SHALLOW and is_flat(text)) or text.count(b"[") + text.count(b"{") <= limit:
        return -1
    # Most hostile texts are deep at once: the beginning gives them away before the whole text is copied.
    if len(text) > _WINDOW and too_deep(text[:_WINDOW], limit) >= 0:
        return too_deep(text[:_WINDOW], limit)
    outside = blank_strings(text)
    if _is_within(outside.translate(_STEPS, _NOT_BRACKETS), limit):
        return -1
    level = 0
    for start in range(0, len(outside), _WINDOW):
        window = outside[start : start + _WINDOW]
        steps = memoryview(window.translate(_STEPS, _NOT_BRACKETS)).cast("b")
        levels = list(accumulate(steps, initial=level))
        if max(levels) > limit:
            nth = next(index for index, reached in enumerate(levels) if reached > limit)
            return start + next(islice(_BRACKET.finditer(window), nth - 1, None)).start()
        level = levels[-1]
    return -1


def is_flat(text: bytes) -> bool:
    """True when at most `SHALLOW` brackets open. Finding a byte is faster than counting it."""
    left = SHALLOW
    for bracket in (b"[", b"{"):
        at = text.find(bracket)
        while at >= 0 and left >= 0:
            left -= 1
            at = text.find(bracket, at + 1)
    return left >= 0


def _is_within(steps: bytes, limit: int) -> bool:
    """True when a string of steps up and down surely stays within `limit`.

    Innermost pairs are taken out, each time one level of them all, as long as there are many. What is left goes up
    and down in long runs: few of them.
    """
    for _ in range(limit):
        folded = steps.replace(b"\x01\xff", b"")
        if not folded:
            return True
        few = (len(steps) - len(folded)) * _WORTH < len(steps)
        steps, limit = folded, limit - 1
        if few:
            break
    level = 0
    for start in range(0, len(steps), _WINDOW):
        runs = _RUN.findall(steps, start, start + _WINDOW)
        levels = list(accumulate([len(run) if run[0] == 1 else -len(run) for run in runs], initial=level))
        if max(levels) > limit:
            return False
        level = levels[-1]
    return True


def blank_strings(text: bytes) -> bytes:
    """The text with the content of its strings zeroed; every other byte keeps its offset."""
    if b"\\" in text:
        # Two blanks for two bytes: offsets must stay. Double backslashes go first, else `\\"` would hide a quote's end.
        text = text.replace(b"\\\\", b"  ").replace(b'\\"', b"  ")
    blank, inside = bytearray(), 0
    for start in range(0, len(text), _WINDOW):
        pieces = text[start : start + _WINDOW].split(b'"')
        pieces[1 - inside :: 2] = map(bytes, map(len, pieces[1 - inside :: 2]))
        # A string may go on into the next window.
        inside ^= len(pieces) % 2 == 0
        blank += b'"'.join(pieces)
    return bytes(blank)
