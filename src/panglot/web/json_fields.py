"""A few top-level fields of a JSON body.

The front never parses bodies. Where a route's contract names fields that the front needs, this finds them. A small body
is parsed whole, which is faster. A thread reads a large one and builds nothing but the fields: it skips other values,
and ends with the last field. A body that is no JSON is left to the worker, which refuses it in the manner of its
platform.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

import orjson

SMALL = 65536
"""Bytes of the largest body that is parsed whole, on the event loop."""
STEP = 65536
"""Bytes that one search looks at: a thread that reads a large body lets the loop run in between."""
LONGEST = 65536
"""Bytes of the longest value that is read."""
TOO_LONG = object()
"""Stands for a field of a large body that is there, and longer than that."""
# Possessive, all of them: a pattern that gives characters back would look at a hostile body again and again.
SPACE = re.compile(rb"[ \t\r\n]*+")
IN_STRING = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)
IN_VALUE = re.compile(rb'[^"\[\]{}]*+')
SCALAR = re.compile(rb'[^ \t\r\n,\]}"]*+')
QUOTE, BACKSLASH, COMMA, COLON, OPEN, CLOSE = (ord(character) for character in '"\\,:{}')
BRACKETS = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}

Body = bytes | bytearray | memoryview


class _Ends(Exception):
    """The body ends, or is no JSON, before all fields have come."""


def read_fields(body: Body, names: Collection[str], max_depth: int) -> dict[str, Any]:
    """The fields of these names, as far as they are there; of several with one name, one of them.

    A body that is no JSON object has none. One that nests deeper than `max_depth` may have none behind that place.
    """
    if len(body) > SMALL:
        return scan_fields(body, names, max_depth)
    try:
        whole = orjson.loads(body)
    except ValueError:
        return {}
    return {name: whole[name] for name in names if name in whole} if isinstance(whole, dict) else {}


def scan_fields(body: Body, names: Collection[str], max_depth: int) -> dict[str, Any]:
    """The same for a large body, without building what is not wanted; of several with one name, the first. A value
    that is too long to be built is TOO_LONG."""
    fields: dict[str, Any] = {}
    try:
        reader = _Reader(body, max_depth)
        reader.expect(OPEN)
        while len(fields) < len(names):
            key = reader.string()
            reader.expect(COLON)
            name = _loaded(key)
            value = reader.value()
            if name in names and name not in fields:
                fields[name] = TOO_LONG if len(value) > LONGEST else orjson.loads(value)
            # Behind the last field is a brace instead: it ends the loop by `_Ends`.
            reader.expect(COMMA)
    except (_Ends, IndexError, ValueError):
        pass
    return fields


def _loaded(key: bytes) -> Any:
    if len(key) > LONGEST:
        raise _Ends
    return orjson.loads(key)


class _Reader:
    """A place in a body. Raises _Ends, or IndexError at the end of the body."""

    def __init__(self, body: Body, max_depth: int) -> None:
        self.body = body
        self.at = 0
        self.max_depth = max_depth

    def expect(self, wanted: int) -> None:
        """Go behind a character, and the space around it. Raises _Ends where another one stands here."""
        self.space()
        if self.body[self.at] != wanted:
            raise _Ends
        self.at += 1
        self.space()

    def space(self) -> None:
        self.skip(SPACE)

    def skip(self, what: re.Pattern[bytes]) -> None:
        """Go on for as long as a pattern fits, a step at a time."""
        while True:
            until = self.at + STEP
            match = what.match(self.body, self.at, until)
            end = match.end() if match is not None else self.at
            # A step may end within an escape, which the pattern leaves to the next step.
            going_on = end > self.at and end >= until - 1
            self.at = end
            if not going_on:
                return

    def string(self) -> bytes:
        """The string that begins here, with its quotes."""
        start = self.at
        if self.body[self.at] != QUOTE:
            raise _Ends
        self.at += 1
        self.skip(IN_STRING)
        if self.body[self.at] != QUOTE:
            raise _Ends
        self.at += 1
        return bytes(self.body[start : min(self.at, start + LONGEST + 1)])

    def value(self) -> bytes:
        """The value that begins here; of a long one, the beginning."""
        start, first = self.at, self.body[self.at]
        if first == QUOTE:
            return self.string()
        if first in BRACKETS:
            self._nested()
        else:
            self.skip(SCALAR)
        return bytes(self.body[start : min(self.at, start + LONGEST + 1)])

    def _nested(self) -> None:
        depth = 1  # That of the object around it.
        while True:
            self.skip(IN_VALUE)
            character = self.body[self.at]
            if character == QUOTE:
                self.string()
                continue
            self.at += 1
            depth += BRACKETS[character]
            if depth == 1:
                return
            if depth > self.max_depth:
                raise _Ends
