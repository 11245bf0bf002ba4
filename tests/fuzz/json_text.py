"""JSON: read the same by orjson, by the standard library and by a slow and simple reader, or refused by all three."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

from panglot_worker.bodies import codec, jsontext
from panglot_worker.errors import ClientError

WORDS = [
    *rb"""[ ] { } " \ , : - + . e E 0 1 9 -0 1e2 0.5 1e400 1E-400 NaN Infinity -Infinity null true false""".split(),
    *rb""""a" "a": {"a": \u \ud83d\ude00 \ud800 \udc00 \n \" \\ \/ "\ud83d \ude00" 9223372036854775807""".split(),
    *rb"""18446744073709551615 18446744073709551616 -9223372036854775808 -9223372036854775809""".split(),
    *rb"""1.7976931348623157e308 1.7976931348623159e308""".split(),
    *[b"9" * 19, b"8" * 20, b"[" * 16, b"]" * 16, b" ", b"\n", b"\0", b"\xff", b"\xef\xbb\xbf", "é€😀".encode()],
]
DEPTHS = (3, 64)


@contextlib.contextmanager
def checking() -> Iterator[Callable[[bytes], None]]:
    yield check


def check(text: bytes) -> None:
    for depth in DEPTHS:
        expected = reference(text, depth)
        fast = outcome(text, depth)
        with mock.patch.object(jsontext, "orjson", None):
            standard = outcome(text, depth)
        assert same(fast, standard), (fast, standard)
        assert isinstance(fast, ClientError) == (expected is REFUSED), (fast, expected)
        if expected is not REFUSED:
            assert repr(fast) == repr(expected)
            check_writing(fast)


def outcome(text: bytes, depth: int) -> Any:
    """The value, or the error a client is told."""
    try:
        return jsontext.loads(text, depth)
    except ClientError as error:
        return error


def same(one: Any, other: Any) -> bool:
    """Errors too: they are short, and tell the client the same."""
    if isinstance(one, ClientError) and isinstance(other, ClientError):
        return str(one) == str(other) and len(str(one)) < 200 and one.status == other.status == 400
    return repr(one) == repr(other)


def check_writing(value: Any) -> None:
    """What was read is written so that it reads the same; both ways differ at most in how a float is spelt."""
    fast = jsontext.dumps(value, codec.convert, "error", 64, 1 << 20)
    with mock.patch.object(jsontext, "orjson", None):
        standard = jsontext.dumps(value, codec.convert, "error", 64, 1 << 20)
    assert repr(jsontext.loads(fast[0])) == repr(jsontext.loads(standard[0])) == repr(value)
    assert fast == standard or b"e" in standard[0]


# The slow and simple reader

REFUSED = object()


class Refused(ValueError):
    pass


class Pairs(list[tuple[str, Any]]):
    """An object as it is written: with equal keys, each with its value."""


def reference(text: bytes, depth: int) -> Any:
    try:
        written = json.loads(
            text.decode("utf-8"),
            parse_int=whole,
            parse_float=real,
            parse_constant=refuse,
            object_pairs_hook=Pairs,
        )
        return settled(written, depth)
    except (ValueError, RecursionError):
        return REFUSED


def whole(digits: str) -> int:
    if len(digits) > 20 or not -(2**63) <= int(digits) < 2**64:
        raise Refused(digits)
    return int(digits)


def real(digits: str) -> float:
    if not math.isfinite(float(digits)):
        raise Refused(digits)
    return float(digits)


def refuse(constant: str) -> Any:
    raise Refused(constant)


def settled(written: Any, depth: int) -> Any:
    """The value, once no part of what was written is too deep or no text."""
    if isinstance(written, str):
        written.encode("utf-8")
        return written
    if not isinstance(written, list):
        return written
    if not depth:
        raise Refused("too deep")
    if isinstance(written, Pairs):
        return {settled(key, depth): settled(item, depth - 1) for key, item in written}
    return [settled(item, depth - 1) for item in written]
