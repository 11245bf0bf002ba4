"""The texts in a script of a page, read as JavaScript reads it."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator

Step = Generator[tuple[str, str], None, int]
"""Gives texts, and where to read on."""

BEFORE_PATTERN = re.compile(r"(^|[(,=:\[!&|?{};~+>]|\breturn)\s*$")
"""What stands before a pattern, and not before a division."""
PATTERN = re.compile(r"/(?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/[a-z]*")
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
QUOTED = re.compile(r"\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'")


def literals(text: str) -> Iterator[tuple[str, str]]:
    """Every text of a script with the code before it; a template comes in the pieces between its values."""
    at = 0
    while at < len(text):
        at = yield from _step(text, at)


def _step(text: str, at: int) -> Step:
    for kind in (COMMENT, QUOTED, PATTERN):
        found = kind.match(text, at)
        if found is None or (kind is PATTERN and not BEFORE_PATTERN.search(text[max(0, at - 40) : at])):
            continue
        if kind is QUOTED:
            yield text[max(0, at - 40) : at], found[0][1:-1]
        return found.end()
    if text[at] == "`":
        return (yield from _template(text, at))
    return at + 1


def _template(text: str, start: int) -> Step:
    piece, at = start + 1, start + 1
    while text[at] != "`":
        if text[at] == "\\":
            at += 2
        elif text.startswith("${", at):
            yield text[max(0, start - 40) : start], text[piece:at]
            at = yield from _value(text, at + 2)
            piece = at
        else:
            at += 1
    yield text[max(0, start - 40) : start], text[piece:at]
    return at + 1


def _value(text: str, at: int) -> Step:
    """The end of a value inside of a template, behind its brace."""
    depth = 1
    while depth:
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        at = at + 1 if text[at] in "{}" else (yield from _step(text, at))
    return at
