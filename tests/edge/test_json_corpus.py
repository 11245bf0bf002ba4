"""Corpus 4c: JSON that is hostile, broken or only strange. Never a 5xx, never a difference for want of orjson."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from support.corpus import Case, Pair, accepted, check_alone, check_in_a_batch, named, pair, refused
from support.server import wait_until

MIB = 1 << 20


def nested(depth: int, opening: bytes = b"[", closing: bytes = b"]", inside: bytes = b"1") -> Callable[[], bytes]:
    return lambda: opening * depth + inside + closing * depth


def objects(depth: int) -> Callable[[], bytes]:
    return nested(depth, b'{"a":', b"}")


def mixed(depth: int) -> Callable[[], bytes]:
    return nested(depth // 2, b'[{"a":', b"}]")


def keys(count: int) -> bytes:
    return b"{" + b",".join(b'"k%d":1' % number for number in range(count)) + b"}"


CASES = {
    "53 depth 64": accepted(nested(64)),
    "53 depth 64 of objects": accepted(objects(64)),
    "53 depth 64, mixed": accepted(mixed(64)),
    "53 depth 65": refused(nested(65)),
    "53 depth 65 of objects": refused(objects(65)),
    "53 depth 66, mixed": refused(mixed(66)),
    "53 depth 1,000": refused(nested(1000)),
    "53 depth 1,000 of objects": refused(objects(1000)),
    "53 depth 100,000": refused(nested(100_000)),
    "53 depth 100,000, mixed": refused(mixed(100_000)),
    "53 depth 2,000,000": refused(nested(2_000_000), heavy=True),
    "53 depth 2,000,000 of objects": refused(objects(2_000_000), heavy=True),
    "53 brackets in a string": accepted(b'"' + b"[" * 1000 + b'"', {"characters": 1000}),
    "54 the largest integer": accepted(b"18446744073709551615", 18446744073709551615),
    "54 the smallest integer": accepted(b"-9223372036854775808", -9223372036854775808),
    "54 2^64": refused(b"18446744073709551616"),
    "54 below -2^63": refused(b"-9223372036854775809"),
    "54 20 digits": refused(b"[" + b"9" * 20 + b"]"),
    "54 4,300 digits": refused(b'{"a": ' + b"9" * 4300 + b"}"),
    "54 4,301 digits": refused(b"9" * 4301),
    "54 a million digits": refused(b"[1," + b"9" * 1_000_000 + b"]"),
    "54 a million digits as text": accepted(b'"' + b"9" * 1_000_000 + b'"', {"characters": 1_000_000}),
    "55 1e400": refused(b"1e400"),
    "55 -1e400": refused(b"[-1e400]"),
    "55 1e-400": accepted(b"1e-400", 0.0),
    "55 minus zero": accepted(b"[-0, -0.0]", {"length": 2, "first": [0, -0.0]}),
    "55 0.1 with 100,000 digits": accepted(b"0.1" + b"0" * 100_000, 0.1),
    "56 NaN": refused(b"NaN"),
    "56 Infinity": refused(b"[Infinity]"),
    "56 -Infinity": refused(b'{"a": -Infinity}'),
    "57 a lone surrogate": refused(rb'"\ud800"'),
    "57 a lone low surrogate": refused(rb'["\udc00"]'),
    "57 surrogates in the wrong order": refused(rb'{"\udc00\ud800": 1}'),
    "57 a pair of surrogates": accepted(rb'"\ud83d\ude00"', "😀"),
    "57 an escaped NUL": accepted(rb'"a\u0000b"', "a\0b"),
    "57 a raw control character": refused(b'"a\nb"'),
    "57 invalid UTF-8": refused(b'"\xff\xfe"'),
    "57 overlong UTF-8": refused(b'"\xc0\xaf"'),
    "57 a surrogate in UTF-8": refused(b'"\xed\xa0\x80"'),
    "57 a byte order mark": refused(b"\xef\xbb\xbf1"),
    "57 UTF-16": refused('{"a": 1}'.encode("utf-16")),
    "57 UTF-16 without a mark": refused('{"a": 1}'.encode("utf-16-le")),
    "57 UTF-32": refused('{"a": 1}'.encode("utf-32")),
    "58 a key twice": accepted(b'{"a": 1, "a": 2}', {"keys": 1, "first": {"a": 2}}),
    "58 images twice": accepted(b'{"images": ["x"], "images": 3}', {"keys": 1, "first": {"images": 3}}),
    "58 a key in two spellings": accepted(rb'{"a": 1, "\u0061": 2}', {"keys": 1, "first": {"a": 2}}),
    "59 a million keys": accepted(lambda: keys(1_000_000), heavy=True),
    "59 a key __proto__": accepted(b'{"__proto__": 1}', {"keys": 1, "first": {"__proto__": 1}}),
    "59 a key __class__": accepted(b'{"__class__": "os.system"}', {"keys": 1, "first": {"__class__": "os.system"}}),
    "59 an empty key": accepted(b'{"": 1}', {"keys": 1, "first": {"": 1}}),
    "60 trailing data": refused(b"1 2"),
    "60 a trailing comma": refused(b"[1,]"),
    "60 a comment": refused(b"[1 /* one */]"),
    "60 a line comment": refused(b"1 // one"),
    "60 single quotes": refused(b"{'a': 1}"),
    "60 a leading zero": refused(b"[01]"),
    "60 a leading plus": refused(b"[+1]"),
    "60 a bare word": refused(b"true false"),
    "60 a hexadecimal number": refused(b"0x10"),
    "60 half a number": refused(b"[1.]"),
    "60 half an object": refused(b'{"a": 1'),
    "60 half a string": refused(b'"abc'),
    "61 an empty body": refused(b""),
    "61 blanks": refused(b" \r\n\t "),
    "61 a NUL": refused(b"\0"),
    "61 null": accepted(b"null", None),
    "61 an empty list": accepted(b"[]", {"length": 0, "first": []}),
    "61 a text": accepted(b'"x"', "x"),
    "61 a number": accepted(b"5", 5),
    "63 32 MiB of [": refused(lambda: b"[" * (32 * MIB), heavy=True),
    "63 32 MiB of {": refused(lambda: b"{" * (32 * MIB), heavy=True),
    "64 ten million numbers": accepted(
        lambda: b"[" + b"1," * 9_999_999 + b"1]", {"length": 10_000_000, "first": [1, 1, 1]}, heavy=True
    ),
    "65 a text of 32 MiB": accepted(
        lambda: b'"' + b"x" * (32 * MIB - 2) + b'"', {"characters": 32 * MIB - 2}, heavy=True
    ),
    "65 a text beyond 32 MiB": refused(lambda: b'"' + b"x" * (32 * MIB) + b'"', 413, heavy=True),
    "65 escapes throughout": accepted(b'"' + rb"\u00e9" * 100_000 + b'"', {"characters": 100_000}),
    "66 as text/plain": accepted(b'{"a": 1}', {"name": "", "type": "text/plain", "size": 8}, content_type="text/plain"),
    "66 with a charset": accepted(b'"x"', "x", content_type="application/json; charset=UTF-8"),
    "66 with charset utf-7": refused(b'"x"', 415, content_type="application/json; charset=utf-7"),
    "66 with two charsets": refused(b'"x"', 400, 415, content_type="application/json; charset=utf-8; charset=utf-7"),
    "66 without a type": accepted(b'["x"]', {"length": 1, "first": ["x"]}, content_type=""),
    "66 as multipart": refused(b'{"a": 1}', content_type="multipart/form-data"),
    "66 as a form": accepted(b"[1]", {"length": 1, "first": [1]}, content_type="application/x-www-form-urlencoded"),
    "66 a +json type": accepted(b'"x"', "x", content_type="application/problem+json"),
    "66 a type in capitals": accepted(b'"x"', "x", content_type="Application/JSON"),
    "66 no type at all": refused(b'"x"', content_type="json"),
    "66 a type of 5,000 characters": refused(b'"x"', 200, 400, content_type="a/" + "b" * 5000),
    "66 a type with a letter beyond ASCII": refused(b'"x"', 200, 400, content_type="application/jsön"),
}  # fmt: skip


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with pair("edge_batch", tmp_path_factory.mktemp("bare")) as running:
        yield running


@pytest.fixture(scope="module")
def waiting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Servers that wait for company, so that all that is sent at once is one batch."""
    with pair("edge_batch", tmp_path_factory.mktemp("bare"), "--max-wait-ms", "150", "--max-batch", "8") as running:
        yield running


@pytest.mark.parametrize(**named(CASES))
def test_alone_and_in_a_loop(servers: Pair, case: Case) -> None:
    check_alone(servers, case)


@pytest.mark.parametrize(**named(CASES))
def test_in_a_batch_of_good_requests(waiting: Pair, case: Case) -> None:
    check_in_a_batch(waiting.fast, case)
    check_in_a_batch(waiting.standard, case)


def test_requests_that_wait_for_company_share_a_batch(waiting: Pair) -> None:
    """The test above is about batches: eight good requests are one, and a bad one leaves the seven others together."""

    def share_a_batch() -> bool:
        """Unless we send them more slowly than they wait."""
        check_in_a_batch(waiting.fast, accepted(b"1"))
        return waiting.fast.metric("panglot_batches_released_total", reason="full") > 0

    wait_until(share_a_batch)
