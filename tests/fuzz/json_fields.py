"""Top-level fields of a JSON body: those that a parser finds, wherever they stand; never an exception."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import orjson

from fuzz.json_text import WORDS as JSON_WORDS
from panglot.web import json_fields

CORPUS = "json_text"
WORDS = [*JSON_WORDS, b'{"model":', b'"model"', b'"id":', b'"a":{', b'"x":["', b'","', b'"},"model":"m"}']
NAMES = ("model", "id")


@contextlib.contextmanager
def checking() -> Iterator[Callable[[bytes], None]]:
    yield check


def check(text: bytes) -> None:
    found = json_fields.scan_fields(text, NAMES, 64)
    assert found.keys() <= set(NAMES)
    for step in (1, 2, 7):
        with mock.patch.object(json_fields, "STEP", step):
            assert repr(json_fields.scan_fields(memoryview(text), NAMES, 64)) == repr(found)
    read = json_fields.read_fields(text, NAMES, 64)
    assert read.keys() <= set(NAMES)
    if b"\\u" not in text and b"[" * 60 not in text and b"{" not in text[1:].replace(b'"a":{', b""):
        with contextlib.suppress(ValueError):
            parsed = orjson.loads(text)
            assert found == first_of_each(text) if isinstance(parsed, dict) else not found


def first_of_each(text: bytes) -> dict[str, Any]:
    """What a whole parser finds, the first of each name."""
    pairs = json.loads(text, object_pairs_hook=Pairs)
    return {name: orjson.loads(json.dumps(plain(value))) for name, value in reversed(pairs) if name in NAMES}


class Pairs(list[tuple[str, Any]]):
    """An object as its pairs."""


def plain(value: Any) -> Any:
    if isinstance(value, Pairs):
        return {name: plain(inner) for name, inner in value}
    return [plain(inner) for inner in value] if isinstance(value, list) else value
