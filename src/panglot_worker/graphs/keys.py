"""Keys of a TOML text that have too many parts, found before it is parsed.

The standard library's parser takes time and memory by the square of a key's parts: `a.a.a. ... = 1` of 100 kB needs ten
gigabytes. This module goes over the text once. Text that is no TOML it leaves to the parser, which words the error.
"""

from __future__ import annotations

import re

MOST_PARTS = 32

_MARK = re.compile(r'"""|\'\'\'|["\'#.\[\]{},=\n]')
_END_OF_LONG = re.compile(r'\\.|"""', re.DOTALL)
_END_OF_SHORT = re.compile(r'\\.|["\n]', re.DOTALL)


def too_long(text: str) -> int:
    """The line of the first key with more than so many parts; 0 when there is none."""
    at, parts = 0, 1
    while True:
        mark = _MARK.search(text, at)
        if mark is None:
            return 0
        at = mark.end()
        sign = mark.group()
        if sign == ".":
            parts += 1
            if parts > MOST_PARTS:
                return text.count("\n", 0, at) + 1
        elif sign in ('"""', "'''", '"', "'", "#"):
            at = _behind(text, at, sign)
            if at < 0:
                return 0
        else:
            parts = 1


def _behind(text: str, at: int, sign: str) -> int:
    """Where a string or a comment that has begun ends; -1 where it does not."""
    if sign == "#":
        return text.find("\n", at)
    if sign in ("'", "'''"):
        end = text.find(sign, at)
        return end + len(sign) if end >= 0 else -1
    ends = _END_OF_LONG if sign == '"""' else _END_OF_SHORT
    while True:
        match = ends.search(text, at)
        if match is None or match.group() == "\n":
            return -1
        at = match.end()
        if match.group() == sign:
            return at
