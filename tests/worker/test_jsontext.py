from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panglot_worker.bodies import jsontext
from panglot_worker.errors import ClientError

needs_orjson = pytest.mark.skipif(jsontext.orjson is None, reason="orjson is not installed")
MODES = [pytest.param(True, id="orjson", marks=needs_orjson), pytest.param(False, id="standard")]


@contextmanager
def standard_library() -> Iterator[None]:
    found = jsontext.orjson
    jsontext.orjson = None
    try:
        yield
    finally:
        jsontext.orjson = found


@pytest.fixture(params=MODES, autouse=True)
def mode(request: pytest.FixtureRequest) -> Iterator[None]:
    if request.param:
        yield
    else:
        with standard_library():
            yield


@contextmanager
def soon() -> Iterator[None]:
    start = time.process_time()
    yield
    assert time.process_time() - start < 5


def refuse(value: Any) -> Any:
    raise TypeError(f"no {type(value).__name__}")


def dumps(value: Any) -> bytes:
    text, warning = jsontext.dumps(value, refuse, "error", 64, 64 << 20)
    assert warning == ""
    return text


def nested(depth: int, opening: bytes = b"[", closing: bytes = b"]") -> bytes:
    return opening * depth + b"1" + closing * depth


ACCEPTED = {
    "null": (b"null", None),
    "true": (b"true", True),
    "false": (b"false", False),
    "lonely integer": (b"42", 42),
    "lonely negative": (b"-1", -1),
    "lonely string": (b'"asd"', "asd"),
    "empty string": (b'""', ""),
    "space around": (b" \t\r\n[1]\n", [1]),
    "space inside": (b'[ 1 , { "a" : 2 } ]', [1, {"a": 2}]),
    "empty array": (b"[]", []),
    "empty object": (b"{}", {}),
    "array of empties": (b"[[],{},[[]]]", [[], {}, [[]]]),
    "mixed array": (b'[null,1,"1",{},true]', [None, 1, "1", {}, True]),
    "zero": (b"[0]", [0]),
    "minus zero": (b"[-0]", [0]),
    "fraction": (b"[123.456789]", [123.456789]),
    "exponent": (b"[1e2]", [100.0]),
    "capital exponent": (b"[1E22]", [1e22]),
    "signed exponents": (b"[1e+2,1E-2]", [100.0, 0.01]),
    "zero to an exponent": (b"[0e1,0e+1]", [0.0, 0.0]),
    "fraction and exponent": (b"[123.456e78]", [123.456e78]),
    "close to zero": (b"[-0.0000000000000000000000000000000000000000000000000000000001]", [-1e-58]),
    "1e-400": (b"[1e-400]", [0.0]),
    "largest double": (b"[1.7976931348623157e308]", [1.7976931348623157e308]),
    "exponent with zeros": (b"[1e000000000000000000000002]", [100.0]),
    "largest 64 bit": (b"[18446744073709551615]", [2**64 - 1]),
    "smallest 64 bit": (b"[-9223372036854775808]", [-(2**63)]),
    "lonely largest 64 bit": (b"18446744073709551615", 2**64 - 1),
    "twenty digits before a point": (b"[123456789012345678901.5]", [123456789012345678901.5]),
    "twenty digits after a point": (b"[[[[[0.00012345678901234567]]]]]", [[[[[0.00012345678901234567]]]]]),
    "digits in a string": (b'[[[[["12345678901234567890123",1]]]]]', [[[[["12345678901234567890123", 1]]]]]),
    "all short escapes": (rb'["\"\\\/\b\f\n\r\t"]', ['"\\/\b\f\n\r\t']),
    "unicode escape": (rb'["\u0012\u20AC\uffff"]', ["\x12€\uffff"]),
    "surrogate pair": (rb'["\uD801\udc37"]', ["\U00010437"]),
    "two surrogate pairs": (rb'["\ud83d\ude39\ud83d\udc8d"]', ["😹💍"]),
    "escaped backslash before u": (rb'["\\ud800"]', ["\\ud800"]),
    "three backslashes before a pair": (rb'["\\\ud83d\ude39"]', ["\\😹"]),
    "escaped NUL": (rb'["\u0000"]', ["\0"]),
    "escaped NUL as key": (rb'{"\u0000":1}', {"\0": 1}),
    "raw UTF-8": ('["é€😀\u2028"]'.encode(), ["é€😀\u2028"]),
    "raw DEL": (b'["\x7f"]', ["\x7f"]),
    "noncharacter": ('["\ufdd0\U0010ffff"]'.encode(), ["\ufdd0\U0010ffff"]),
    "string with brackets": (b'["[[{{", "]}"]', ["[[{{", "]}"]),
    "string with comment": (b'["a/*b*/c"]', ["a/*b*/c"]),
    "duplicate key": (b'{"a":1,"b":2,"a":3}', {"a": 3, "b": 2}),
    "duplicate key images": (b'{"images":[1],"images":[2]}', {"images": [2]}),
    "empty key": (b'{"":0}', {"": 0}),
    "long keys": (b'{"' + b"x" * 1000 + b'":1}', {"x" * 1000: 1}),
    "keys of classes": (b'{"__proto__":{},"__class__":1}', {"__proto__": {}, "__class__": 1}),
    "64 arrays": (nested(64), json.loads(nested(64))),
    "64 objects": (nested(64, b'{"a":', b"}"), json.loads(nested(64, b'{"a":', b"}"))),
    "brackets beside each other": (b"[" + b"[]," * 200 + b"{}]", [[]] * 200 + [{}]),
    "brackets in strings": (b"[" + b'"[[[",' * 200 + b"1]", ["[[["] * 200 + [1]),
    "quotes in strings with brackets": (rb'["\"[",' * 60 + b"1" + b"]" * 60, None),
}

REFUSED = {
    "empty": b"",
    "blank": b" \t\r\n",
    "one comma": b",",
    "extra comma": b"[1,]",
    "double comma": b"[1,,2]",
    "comma first": b"[,1]",
    "comma after array": b"[1],",
    "trailing bracket": b"[1]]",
    "trailing brace": b'{"a":1}}',
    "two values": b"1 2",
    "two arrays": b"[][]",
    "trailing hash": b"[1]#",
    "trailing NUL": b"[1]\0",
    "unclosed array": b"[1",
    "unclosed object": b'{"a":1',
    "unclosed string": b'["a',
    "unclosed after comma": b"[1,",
    "open array only": b"[",
    "open object only": b"{",
    "close only": b"]",
    "wrong bracket": b"[1}",
    "wrong brace": b'{"a":1]',
    "colon in array": b'["a":1]',
    "no colon": b'{"a" 1}',
    "double colon": b'{"a"::1}',
    "no value": b'{"a":}',
    "key only": b'{"a"}',
    "trailing comma in object": b'{"a":1,}',
    "number as key": b"{1:1}",
    "bare key": b"{a:1}",
    "single quotes": b"{'a':1}",
    "single quoted string": b"['a']",
    "comment": b"[1]/**/",
    "line comment": b"[1]//",
    "comment inside": b"[1,/* two */2]",
    "capital literal": b"[True]",
    "short literal": b"[tru]",
    "long literal": b"[nulll]",
    "undefined": b"[undefined]",
    "NaN": b"[NaN]",
    "Infinity": b"[Infinity]",
    "minus Infinity": b"[-Infinity]",
    "minus NaN": b"[-NaN]",
    "lonely NaN": b"NaN",
    "NaN after its name": b'{"NaN":NaN}',
    "leading zero": b"[01]",
    "negative leading zero": b"[-01]",
    "plus": b"[+1]",
    "minus only": b"[-]",
    "double minus": b"[--1]",
    "minus space": b"[- 1]",
    "point first": b"[.5]",
    "point last": b"[1.]",
    "minus point": b"[-.5]",
    "point exponent": b"[1.e1]",
    "exponent without digits": b"[1e]",
    "exponent sign only": b"[1e+]",
    "two points": b"[1.2.3]",
    "hexadecimal": b"[0x1F]",
    "underscore": b"[1_000]",
    "letter after number": b"[1a]",
    "arabic digit": "[١]".encode(),
    "full-width digit": "[１]".encode(),
    "raw newline in string": b'["a\nb"]',
    "raw tab in string": b'["a\tb"]',
    "raw NUL in string": b'["a\0b"]',
    "unknown escape": rb'["\x41"]',
    "escaped apostrophe": rb'["\'"]',
    "short unicode escape": rb'["\u00A"]',
    "bad unicode escape": rb'["\uqqqq"]',
    "backslash last": b'["\\',
    "escaped quote last": rb'["\"]',
    "form feed as space": b"\f[1]",
    "no-break space": b"[1,\xc2\xa02]",
    "byte order mark": b"\xef\xbb\xbf[1]",
    "UTF-16": "[1]".encode("utf-16"),
    "UTF-16 without mark": "[1]".encode("utf-16-le"),
    "UTF-32": "[1]".encode("utf-32"),
    "invalid byte": b'["\xff"]',
    "overlong": b'["\xc0\xaf"]',
    "cut UTF-8": b'["\xe2\x82"]',
    "raw surrogate": b'["\xed\xa0\x80"]',
    "beyond unicode": b'["\xf4\xbf\xbf\xbf"]',
    "lone high surrogate": rb'["\ud800"]',
    "lone low surrogate": rb'["\uDC00"]',
    "surrogates reversed": rb'["\ude00\ud83d"]',
    "two high surrogates": rb'["\ud800\ud800\udc00"]',
    "high surrogate and letter": rb'["\ud800a"]',
    "high surrogate and escape": rb'["\ud800\n"]',
    "lone surrogate in key": rb'{"\ud800":1}',
    "surrogate after backslash": rb'["\\\ud800"]',
    "1e400": b"[1e400]",
    "-1e400": b"[-1e400]",
    "1E+400 alone": b"1E+400",
    "310 digits and a fraction": b"[" + b"9" * 310 + b".5]",
    "2^64": b"[18446744073709551616]",
    "2^64 alone": b"18446744073709551616",
    "2^64 deep": b"[[[[[18446744073709551616]]]]]",
    "2^64 in an object": b'{"a":{"b":[1,18446744073709551616]}}',
    "-2^63-1": b"[-9223372036854775809]",
    "-2^63-1 among others": b'[0.5,"x",-9223372036854775809 ]',
    "20 digits": b"[99999999999999999999]",
    "4300 digits": b"[" + b"1" * 4300 + b"]",
    "4301 digits": b"[" + b"1" * 4301 + b"]",
    "10^6 digits": b"[" + b"1" * 10**6 + b"]",
    "65 arrays": nested(65),
    "65 objects": nested(65, b'{"a":', b"}"),
    "65 mixed": nested(33, b'[{"a":', b"}]"),
    "65 beside many": b"[" + b"[]," * 5000 + nested(64) + b"]",
    "1000 arrays": nested(1000),
    "10^5 arrays": nested(10**5),
    "10^5 objects": nested(10**5, b'{"a":', b"}"),
    "10^5 mixed": nested(10**5, b'[{"a":', b"}]"),
    "2*10^6 arrays": nested(2 * 10**6),
    "2*10^6 unclosed objects": b'{"a":' * 2 * 10**6,
    "32 MiB of brackets": b"[" * (32 << 20),
    "32 MiB of closing brackets": b"]" * (32 << 20),
    "32 MiB of quotes": b'"' * (32 << 20),
    "32 MiB of backslashes": b'["' + b"\\" * (32 << 20),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepts(name: str) -> None:
    text, expected = ACCEPTED[name]
    if expected is None and text != b"null":
        expected = json.loads(text)
    for body in (text, bytearray(text), memoryview(text)):
        value = jsontext.loads(body)
        assert value == expected
        assert repr(value) == repr(expected)


@pytest.mark.quiet
@pytest.mark.parametrize("name", REFUSED)
def test_refuses(name: str) -> None:
    with soon(), pytest.raises(ClientError) as caught:
        jsontext.loads(REFUSED[name])
    assert caught.value.status == 400
    assert len(str(caught.value)) < 200


MESSAGES = [
    (b"", "the request body is empty"),
    (b" \n", "the request body is empty"),
    (b'{"a":1,"b":[1,2 3]}', "byte 16"),
    ('["名",x]'.encode(), "byte 7"),
    (b'["\xff"]', "not valid UTF-8 (byte 2)"),
    (b'["NaN",NaN]', "NaN is not a JSON value (byte 7)"),
    (b"[1,-Infinity]", "-Infinity is not a JSON value (byte 3)"),
    (b"[1, 1e999]", "too large for a double (byte 4)"),
    (b'["123456789012345678901", 123456789012345678901]', "64 bit (byte 26)"),
    (b'["a","\\ud800"]', "lone surrogate escape (byte 6)"),
    (b'["[[[",' + nested(64) + b"]", "deeper than 64 levels (byte 70)"),
    (b"\xef\xbb\xbf1", "byte order mark"),
    (b"[1,2", "ends too early"),
]


@pytest.mark.parametrize(("text", "words"), MESSAGES)
def test_messages_say_what_and_where(text: bytes, words: str) -> None:
    with pytest.raises(ClientError) as caught:
        jsontext.loads(text)
    assert words in str(caught.value)


@pytest.mark.parametrize("depth", [1, 2, 3, 4, 5, 64, 300])
def test_depth_limit_is_exact(depth: int) -> None:
    for opening, closing in ((b"[", b"]"), (b'{"a":', b"}")):
        jsontext.loads(nested(depth, opening, closing), depth)
        with pytest.raises(ClientError, match=f"deeper than {depth} levels"):
            jsontext.loads(nested(depth + 1, opening, closing), depth)


def test_depth_check_survives_a_raised_recursion_limit() -> None:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(10**7)
    try:
        with pytest.raises(ClientError, match="nested deeper"):
            jsontext.loads(nested(10**6))
    finally:
        sys.setrecursionlimit(before)


LARGE = {
    "10^7 numbers": (b"[" + b"1," * 10**7 + b"1]", lambda value: len(value) == 10**7 + 1),
    "32 MiB string": (b'"' + b"a" * (32 << 20) + b'"', lambda value: len(value) == 32 << 20),
    "escapes": (b'["' + b"\\n" * (8 << 20) + b'"]', lambda value: value == ["\n" * (8 << 20)]),
    "10^6 keys": (
        b"{" + b",".join(b'"k%d":%d' % (i, i) for i in range(10**6)) + b"}",
        lambda value: value["k99999"] == 99999,
    ),
    "towers": (b"[" + b",".join([nested(60)] * 10**4) + b"]", lambda value: len(value) == 10**4),
    "10^5 digits": (b"[0." + b"1" * 10**5 + b"]", lambda value: value == [1 / 9]),
    "digits in a string": (b'"' + b"1" * 10**6 + b'"', lambda value: len(value) == 10**6),
}


@pytest.mark.quiet
@pytest.mark.parametrize(("text", "check"), LARGE.values(), ids=LARGE)
def test_large_texts_are_read_quickly(text: bytes, check: Any) -> None:
    with soon():
        assert check(jsontext.loads(text))


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(blacklist_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=8) | st.dictionaries(st.text('aé"\\[{\u2028', max_size=4), inner, max_size=8)
    ),
    max_leaves=60,
)


def outcome(text: bytes) -> Any:
    try:
        return jsontext.loads(text)
    except ClientError as error:
        return error.status


@given(JSON_VALUES)
def test_round_trip(value: Any) -> None:
    assert jsontext.loads(dumps(value)) == value
    assert jsontext.loads(json.dumps(value).encode()) == value


@given(JSON_VALUES)
def test_both_ways_write_the_same(value: Any) -> None:
    text = dumps(value)
    with standard_library():
        other = dumps(value)
    assert text == other or json.loads(text) == json.loads(other)
    if not has_exponent(value):
        assert text == other


def has_exponent(value: Any) -> bool:
    if isinstance(value, (list, dict)):
        return any(has_exponent(item) for item in (value.values() if isinstance(value, dict) else value))
    return isinstance(value, float) and "e" in repr(value)


WORDS = rb"""[ ] { } " \ , : 1 - . e E5 0 1e400 NaN null "a" "a": \u d800 \ud83d\ude00""".split()
FRAGMENTS = st.sampled_from([*WORDS, b" ", b"\n", b"\0", b"\xff", "é".encode(), b"9" * 19, b"8" * 20])


@settings(max_examples=500)
@given(st.lists(FRAGMENTS, max_size=12).map(b"".join))
def test_both_ways_accept_the_same(text: bytes) -> None:
    value = outcome(text)
    with standard_library():
        other = outcome(text)
    assert repr(value) == repr(other)


@given(JSON_VALUES, st.integers(1, 6))
def test_too_deep_agrees_with_a_plain_count(value: Any, limit: int) -> None:
    text = json.dumps([value] * 3).encode()
    level, inside, skip, expected = 0, False, False, -1
    for offset, char in enumerate(text.decode()):
        if skip or (inside and char == "\\"):
            skip = not skip
        elif char == '"':
            inside = not inside
        elif not inside:
            level += (char in "[{") - (char in "]}")
            if level > limit:
                expected = offset
                break
    assert jsontext.too_deep(text, limit) == expected


def test_too_deep_finds_the_place_in_a_long_text() -> None:
    row = b'[{"a":["]\\"",[[1,2]]]}],'
    text = b"[" + row * 20000 + nested(64) + b"," + row * 20000 + b"1]"
    assert jsontext.too_deep(text, 64) == 1 + len(row) * 20000 + 63
    assert jsontext.too_deep(text, 65) == -1
    assert jsontext.too_deep(text, 6) == 1 + len(row) * 20000 + 5
    assert jsontext.too_deep(text, 5) == 1 + row.index(b"[[") + 1
